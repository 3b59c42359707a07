"""Data versions of a broker, and the file that keeps the last one."""

import logging
import os
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.typed import decoded

log: Final = logging.getLogger(__name__)


def first_version(now_ms: int) -> DataVersion:
    """Return the version of a broker that starts for the first time."""
    return DataVersion(0, now_ms, 0)


def next_version(version: DataVersion, now_ms: int) -> DataVersion:
    """Return the next version; its counter differs even if the clock does not advance."""
    return DataVersion(version.state_version, now_ms, version.counter + 1)


class StoredVersion(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The data version of a broker between two starts, and the digest of its table."""

    data_version: DataVersion
    table_digest: str


def read_stored_version(path: Path) -> StoredVersion | None:
    """Return the stored version; None without a file, and, with a warning, for an unreadable one.

    Starting without it is safe: a new version differs from all that name servers have."""
    try:
        return decoded(path.read_bytes(), StoredVersion)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        log.warning("%s: unreadable: %s; a new data version is made", path, error)
        return None


def write_stored_version(path: Path, stored: StoredVersion) -> None:
    """Replace the file atomically; OSError if it cannot be written.

    A power failure may leave it empty, which costs a new version only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(stored))
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
