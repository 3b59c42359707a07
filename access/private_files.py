"""Files that other users of the machine cannot open: how they are read, and whether they still are what was read."""

import hashlib
import os
import stat
from pathlib import Path
from typing import Final

import msgspec

__all__ = ["FileRefused", "PrivateFiles", "Stamp"]

OTHERS: Final = stat.S_IRWXO


class FileRefused(Exception):
    """Why a file is not read, without its name or content."""


class Stamp(msgspec.Struct, frozen=True):
    """What a file system says of a file, behind all links; `changed_ns` since 1970, 0 where there is no file."""

    identity: tuple[int, ...]
    changed_ns: int = 0


class PrivateFiles:
    """The files that were read, each with a digest of its content, or of why it was refused."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[int, bytes]] = {}

    def read(self, path: Path, most: int) -> bytes:
        """Return the content of a file of at most so many bytes. Raises FileRefused."""
        try:
            content = _content(path, most)
        except FileRefused as refused:
            self._read[path] = (most, _digest(refused))
            raise
        self._read[path] = (most, _digest(content))
        return content

    def stamps(self) -> tuple[Stamp, ...]:
        """Return what the file system says of each now; 4 µs for each."""
        return tuple(map(_stamp, self._read))

    def are_as_read(self) -> bool:
        """Return whether each has the content now that it had, or is refused as it was; some 15 µs for each."""
        return all(_now(path, most) == digest for path, (most, digest) in self._read.items())


def _content(path: Path, most: int) -> bytes:
    try:  # a pipe is refused, not waited for
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb", buffering=0) as file:
            _check(os.fstat(descriptor))
            content = file.read(most + 1) or b""
    except (OSError, ValueError) as error:  # a name with NUL is a ValueError
        raise FileRefused(f"cannot be read ({getattr(error, 'strerror', None) or 'no file name'})") from None
    if len(content) > most:
        raise FileRefused(f"has more than {most} bytes")
    return content


def _check(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused("is no regular file")
    if status.st_mode & OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        raise FileRefused(
            f"is open to all users of the machine (mode {mode:04o}); chmod o-rwx, or defaultMode 0440"
        )


def _digest(outcome: bytes | FileRefused) -> bytes:
    if isinstance(outcome, FileRefused):
        return str(outcome).encode()
    return hashlib.sha256(outcome).digest()


def _now(path: Path, most: int) -> bytes:
    try:
        return _digest(_content(path, most))
    except FileRefused as refused:
        return _digest(refused)


def _stamp(path: Path) -> Stamp:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return Stamp(())
    identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    return Stamp((*identity, status.st_ctime_ns), max(status.st_mtime_ns, status.st_ctime_ns))
