"""Data versions as a broker makes them: what its topic table is called, anew after each change of it."""

import logging
import os
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from remoting.data_version import DataVersion

LOG: Final = logging.getLogger(__name__)


def first_version(now_ms: int) -> DataVersion:
    """Of a broker that starts for the first time."""
    return DataVersion(0, now_ms, 0)


def next_version(version: DataVersion, now_ms: int) -> DataVersion:
    """The counter makes it another version even when the clock stands still or goes back."""
    return DataVersion(version.state_version, now_ms, version.counter + 1)


class KeptVersion(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a broker remembers from one start to the next: a data version, and which table has it."""

    data_version: DataVersion
    table_digest: str


def read_kept(path: Path) -> KeptVersion | None:
    """What was written there; None, with a warning unless there is no such file, when it cannot be read.

    To go on without it is safe: a version made now differs from all that name servers know."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=KeptVersion)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        LOG.warning("%s: %s; the data version begins anew", path, error)
        return None


def write_kept(path: Path, kept: KeptVersion) -> None:
    """Write it so that the file is whole whenever somebody looks; OSError where it cannot be written.

    A power failure may leave it empty, which costs no more than a new version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(kept))
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
