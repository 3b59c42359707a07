"""Where a table is, as delta-rs, Spark and the tasks that write its files name it."""

import os
import secrets
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import msgspec
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, PyFileSystem

from mqpipeline.options import OptionError

GLOBS: Final = frozenset("\\{}[]*?")
"""What Hadoop takes for a pattern in a path, unless a backslash is before it."""


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
            with self._files.open_output_stream(path) as stream:
                stream.write(content)
            return
        file = self.folder / path
        created = _create(file.parent)
        with file.open("xb", buffering=0) as opened:
            opened.write(content)
            os.fsync(opened.fileno())
        for folder in (file.parent, *created):
            sync(folder)

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
        if self.folder is not None:
            ends = (path for path in self.folder.rglob(f"*{pattern_end}") if path.is_file())
            return sorted(str(path.relative_to(self.folder)) for path in ends)
        found: list[FileInfo] = self._files.get_file_info(
            FileSelector("", recursive=True, allow_not_found=True)
        )
        return sorted(
            info.path for info in found if info.type == FileType.File and info.path.endswith(pattern_end)
        )

    def exists(self, path: str) -> bool:
        """Whether there is a file."""
        if self.folder is not None:
            return (self.folder / path).is_file()
        return bool(self._files.get_file_info(path).type == FileType.File)

    def open(self, path: str) -> Any:
        """Open a file to read. Raises FileNotFoundError."""
        if self.folder is not None:
            return (self.folder / path).open("rb")
        return self._files.open_input_file(path)

    @cached_property
    def _files(self) -> FileSystem:
        return PyFileSystem(DeltaStorageHandler(self.url))


def place(warehouse: str) -> Place:
    """Return the place that a user names. Raises OptionError if it cannot be one."""
    parts = urlsplit(warehouse)
    if parts.scheme not in ("", "file"):
        return Place(warehouse.rstrip("/"), None)
    path = unquote(parts.path) if parts.scheme else warehouse
    if "%" in path:
        raise OptionError(
            f"the warehouse {warehouse}: a path with % is none that Delta Lake can write; rename it"
        )
    folder = Path(path).absolute()
    return Place(f"file://{quote(str(folder))}", folder)


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
