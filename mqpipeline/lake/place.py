"""Where a table is, as delta-rs, Spark and the tasks that write its files name it."""

import os
import re
import secrets
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import msgspec
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, PyFileSystem

from mqpipeline.options import OptionError

GLOBS: Final = frozenset("\\{}[]*?")
"""What Hadoop takes for a pattern in a path, unless a backslash is before it."""


STORES: Final = ("s3", "s3a", "gs", "abfss", "abfs", "az", "adl", "azure", "wasbs", "hdfs")
"""Schemes of object stores that delta-rs knows, and Spark with a jar."""
LEADING_SLASHES: Final = re.compile("^/+")


class Stored(NamedTuple):
    """A file as it is stored: bytes, and when it was written (Unix seconds)."""

    size: int
    written_s: float


class Place(msgspec.Struct, frozen=True, dict=True):
    """A folder of this machine, `folder`, or one of an object store, where that is None. `url` is without a slash at
    its end."""

    url: str
    folder: Path | None

    def under(self, name: str) -> "Place":
        """Return the folder of that name in it."""
        return Place(f"{self.url}/{name}", self.folder and self.folder / name)

    @property
    def name(self) -> str:
        """How people write it."""
        return str(self.folder or self.url)

    def for_spark(self, path: str = "") -> str:
        """Return a path that Spark reads: of the folder, or of a file in it."""
        whole = f"{self.folder or self.url}/{path}".rstrip("/")
        return ("file:" if self.folder else "") + "".join(f"\\{c}" if c in GLOBS else c for c in whole)

    def write(self, path: str, content: memoryview) -> None:
        """Write a file, a new one on this machine; it is on the disk, or with the object store, when this returns."""
        if self.folder is None:
            # pyarrow 26 gives Python streams a Buffer, and that of deltalake 1.6 takes bytes only
            stream = self._handler._handler.open_output_stream(path)
            stream.write(bytes(content))
            stream.close()  # type: ignore[attr-defined]  # it is there, and ends the upload
            return
        file = self.folder / path
        created = _create(file.parent)
        # buffered: it writes all or raises, where a bare file may write a part
        with file.open("xb") as opened:
            try:
                opened.write(content)
                opened.flush()
            except OSError:
                file.unlink()
                raise
            os.fsync(opened.fileno())
        for folder in (file.parent, *created):
            sync(folder)

    def refuse_unwritable(self) -> None:
        """Raise OptionError if no file can be written here; a folder that is not there is made."""
        if self.folder is None:
            return
        try:
            _create(self.folder)
            with TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise OptionError(
                f"the warehouse {self.name}: nothing can be written there: {error.strerror}; name another folder, or "
                "give this user the right"
            ) from None

    def replace(self, path: str, content: bytes) -> None:
        """Write a file, in the place of another; a reader finds the old content or the new one."""
        if self.folder is None:
            self.write(path, memoryview(content))
            return
        beside = f"{path}.{secrets.token_hex(8)}.new"
        self.write(beside, memoryview(content))
        (self.folder / beside).replace(self.folder / path)

    def names(self, pattern_end: str) -> list[str]:
        """Return the paths under it that end so, in order."""
        return [path for path in self.stored() if path.endswith(pattern_end)]

    def stored(self) -> dict[str, Stored]:
        """Return all files under it by their paths, in order of these."""
        return dict(sorted(self._on_disk() if self.folder else self._in_store()))

    def has(self, path: str) -> bool:
        """Whether there is a file of this path."""
        if self.folder is not None:
            return (self.folder / path).is_file()
        return bool(self._files.get_file_info(path).type == FileType.File)

    def size(self, path: str) -> int:
        """Return the bytes of a file."""
        if self.folder is not None:
            return (self.folder / path).stat().st_size
        return int(self._files.get_file_info(path).size)

    def move(self, path: str, to: str) -> None:
        """Give a file another path, where there is no file; it stays there, whatever happens to the machine."""
        if self.folder is None:
            self._files.move(path, to)
            return
        source, target = self.folder / path, self.folder / to
        created = _create(target.parent)
        source.rename(target)
        for folder in {source.parent, target.parent, *created}:
            sync(folder)

    def move_folder(self, path: str, to: str) -> None:
        """Give all files of a folder, if it is there, another place, where there is nothing; do so again if killed."""
        if self.folder is not None:
            if (self.folder / path).is_dir():
                self.move(path, to)
            return
        for file in self.under(path).stored():
            self.move(f"{path}/{file}", f"{to}/{file}")

    def open(self, path: str) -> Any:
        """Open a file to read. Raises FileNotFoundError."""
        if self.folder is not None:
            return (self.folder / path).open("rb")
        return self._files.open_input_file(path)

    def _on_disk(self) -> Iterator[tuple[str, Stored]]:
        assert self.folder is not None
        for path in self.folder.rglob("*"):
            if path.is_file():
                status = path.stat()
                yield str(path.relative_to(self.folder)), Stored(status.st_size, status.st_mtime)

    def _in_store(self) -> Iterator[tuple[str, Stored]]:
        infos: list[FileInfo] = self._files.get_file_info(
            FileSelector("", recursive=True, allow_not_found=True)
        )
        for info in infos:
            if info.type == FileType.File:
                yield info.path, Stored(info.size, info.mtime.timestamp() if info.mtime else 0.0)

    @cached_property
    def _handler(self) -> DeltaStorageHandler:
        return DeltaStorageHandler(self.url)

    @cached_property
    def _files(self) -> FileSystem:
        return PyFileSystem(self._handler)


def place(warehouse: str) -> Place:
    """Return the place that a user names. Raises OptionError if it cannot be one."""
    parts = urlsplit(warehouse)
    if parts.scheme not in ("", "file", *STORES):
        raise OptionError(f"the warehouse {warehouse}: a folder, or one of {'://, '.join(STORES)}://")
    if parts.scheme in STORES:
        return Place(warehouse.rstrip("/"), None)
    path = unquote(parts.path) if parts.scheme else warehouse
    if "%" in path or "\\" in path:
        raise OptionError(
            f"the warehouse {warehouse}: Delta Lake cannot write to a path with % or a backslash; rename it"
        )
    if parts.scheme and (parts.netloc not in ("", "localhost") or parts.query or parts.fragment):
        raise OptionError(
            f"the warehouse {warehouse}: a URL of a file has no host, ? or #; name the folder alone"
        )
    # links followed: one name for Spark, delta-rs and us
    folder = Path(LEADING_SLASHES.sub("/", path)).resolve()
    return Place(f"file://{quote(str(folder))}", folder)


def is_data(path: str) -> bool:
    """Whether a file of a table's place may be one of its files: neither of its log, nor hidden."""
    return not any(name.startswith(("_", ".")) for name in path.split("/"))


def sync(folder: Path) -> None:
    """Return when what was created in this folder stays there, whatever happens to the machine."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _create(folder: Path) -> list[Path]:
    """Create a folder and those above it; return the parents of what is new."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return [one.parent for one in missing]
