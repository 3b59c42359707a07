"""The file of a backup: JSON with a format and a version, written at once and checked as a whole."""

import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

from mqns.cli.backup.state import KVTables, SavedDrain, State
from mqns.cli.http_api import decode
from mqns.errors import ConfigError
from rocketmq_remoting.typed import converted

__all__ = ["Backup", "Server", "backup_text", "print_backup", "read_backup", "write_backup"]

T = TypeVar("T")
FORMAT: Final = "redis-namesrv-backup"
VERSION: Final = 1
FILE_MOST: Final = 512 << 20
"""Bytes of a file."""


class Server(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where it was read: the URL of the HTTP side, without a login."""

    url: str


class Backup(msgspec.Struct, frozen=True, rename="camel"):
    """A backup; `taken_millis` is Unix ms by the clock of the server's store."""

    taken_millis: int
    server: Server
    kv: KVTables
    settings: Mapping[str, str]
    drains: Mapping[str, SavedDrain]
    format: Literal["redis-namesrv-backup"] = FORMAT
    version: int = VERSION

    @property
    def state(self) -> State:
        """What it holds."""
        return State(self.kv, self.settings, self.drains)


MEMBERS: Final = frozenset(field.encode_name for field in msgspec.structs.fields(Backup))


def backup_text(backup: Backup) -> str:
    """Return the text of the file, in ASCII and with sorted names. Raises ConfigError if no restore would read it."""
    text = json.dumps(msgspec.to_builtins(backup), indent=1, sort_keys=True) + "\n"
    if len(text) > FILE_MOST:
        raise ConfigError(f"the backup would have over {FILE_MOST} bytes")
    return text


def print_backup(text: str) -> None:
    """Write the text to standard output, all of it. Raises ConfigError."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        _drop_output()
        raise ConfigError(f"standard output: {error.strerror or error}") from error


def _drop_output() -> None:
    """Have the end of the process not fail, too: it writes what standard output still has."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def write_backup(path: Path, text: str) -> None:
    """Put the file in its place once it is whole and on disk; its owner alone may read it. Raises ConfigError.

    A link stays, and the file that it leads to is replaced."""
    try:
        with suppress(FileNotFoundError):
            _expect_file(path, "- writes to standard output")
        _replace(Path(os.path.realpath(path)), text)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error


def _expect_file(path: Path, instead: str) -> None:
    """Raise ConfigError for what is no regular file: opening a pipe waits. Raises OSError for what is not there.

    The system follows links here, and refuses those that others may have planted (protected_symlinks)."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ConfigError(f"{path}: no file; {instead}")


def _replace(path: Path, text: str) -> None:
    """Put a file in the place of the one at a path, which is no link. Raises OSError; the earlier one stays then."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):  # interrupted when it was in its place already
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    """Have a new name of a file survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_backup(path: Path) -> Backup:
    """Return the backup of a file. Raises ConfigError, which names the member that is wrong."""
    try:
        _expect_file(path, "a backup is read from a file only")
        with path.open("rb") as file:
            data = file.read(FILE_MOST + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    try:
        if len(data) > FILE_MOST:
            raise msgspec.ValidationError(f"over {FILE_MOST} bytes")
        members = decode(data, dict[str, Any])
        _expect_names_once(data)
        return _checked(members)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is no whole backup: {error}; nothing was restored") from None


def _expect_names_once(data: bytes) -> None:
    """Raise msgspec.DecodeError for an object that has a member twice: the decoder takes the last."""

    def expect_once(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"it has the member {name!r} twice")
            seen.add(name)

    try:
        json.loads(data, object_pairs_hook=expect_once)
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def _checked(members: Mapping[str, Any]) -> Backup:
    """Return the backup of these members. Raises msgspec.ValidationError."""
    if members.get("format") != FORMAT:
        raise msgspec.ValidationError(f"its format is not {FORMAT}")
    version = _typed("version", members.get("version"), int)
    if version != VERSION:
        newer = "; a newer mqns reads it" if version > VERSION else ""
        raise msgspec.ValidationError(f"it has version {version}, and this mqns reads {VERSION}{newer}")
    if unknown := sorted(members.keys() - MEMBERS):
        raise msgspec.ValidationError(f"unknown member {unknown[0]!r}")
    if missing := sorted(MEMBERS - members.keys()):
        raise msgspec.ValidationError(f"no member {missing[0]!r}")
    return Backup(
        _typed("takenMillis", members["takenMillis"], int),
        _typed("server", members["server"], Server),
        {
            namespace: _each(f"kv.{namespace}", table, str)
            for namespace, table in _each("kv", members["kv"], dict).items()
        },
        _each("settings", members["settings"], str),
        _each("drains", members["drains"], SavedDrain),
    )


def _each(where: str, value: Any, shape: type[T]) -> dict[str, T]:
    table = _typed(where, value, dict)
    return {name: _typed(f"{where}.{name}", member, shape) for name, member in table.items()}


def _typed(where: str, value: Any, shape: type[T]) -> T:
    try:
        return converted(value, shape)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"{where}: {error}") from None
