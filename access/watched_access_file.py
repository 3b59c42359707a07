"""The file of the principals while a process runs: looked at each second, and taken whole or not at all."""

from pathlib import Path
from time import time
from typing import Final

from access.access_file import InvalidAccessFile, Loaded, load
from access.private_files import PrivateFiles, Stamp

__all__ = ["WatchedAccessFile"]

RECENT_S: Final = 3
"""A file that was written so short a time ago may be written again without that its times show it."""
COMPARE_EVERY_S: Final = 10
"""Content is compared that often in any case: not all file systems tell the truth about times."""
ATTEMPTS: Final = 5


class WatchedAccessFile:
    """`loaded` is in force: what was read last without an error."""

    def __init__(self, path: Path) -> None:
        """Raises InvalidAccessFile."""
        self._path = path
        self._files = PrivateFiles()
        self._stamps: tuple[Stamp, ...] = ()
        self._compared_at = 0.0
        outcome = None
        for _ in range(ATTEMPTS):
            outcome = outcome or self._read(time())
        if not isinstance(outcome, Loaded):
            raise outcome or InvalidAccessFile(f"{path}: changes while it is read")
        self.loaded = outcome

    def poll(self, now: float) -> Loaded | InvalidAccessFile | None:
        """Return what a change of the file or of the files it names leads to, None without one; `now` is Unix time.

        An error leaves `loaded` as it was, and is returned once for a content. Blocks for some µs a file, and at a
        change as long as `load`. What changes while it is read, as a mounted Secret whose link is swapped, is left for
        the next call."""
        stamps = self._files.stamps()
        if stamps == self._stamps and self._is_settled(now):
            return None
        if self._files.are_as_read():
            self._stamps, self._compared_at = stamps, now
            return None
        outcome = self._read(now)
        if isinstance(outcome, Loaded):
            self.loaded = outcome
        return outcome

    def _is_settled(self, now: float) -> bool:
        recent_ns = (self._compared_at - RECENT_S) * 1e9
        is_recent = any(stamp.changed_ns > recent_ns for stamp in self._stamps)
        return not is_recent and 0 <= now - self._compared_at < COMPARE_EVERY_S

    def _read(self, now: float) -> Loaded | InvalidAccessFile | None:
        """Return what the files lead to; None if they changed meanwhile."""
        files = PrivateFiles()
        outcome: Loaded | InvalidAccessFile
        try:
            outcome = load(self._path, files)
        except InvalidAccessFile as error:
            outcome = error
        stamps = files.stamps()
        if not files.are_as_read():
            return None
        self._files, self._stamps, self._compared_at = files, stamps, now
        return outcome
