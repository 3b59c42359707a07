"""The principals of a running process, as its access file has them now."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from access.access_file import InvalidAccessFile
from access.principals import Principals
from access.watched_access_file import WatchedAccessFile

__all__ = ["POLL_S", "LivePrincipals"]

POLL_S: Final = 1.0
"""How often `poll` is to be called."""

log = logging.getLogger(__name__)

Count = Callable[[str], None]


class LivePrincipals:
    """`principals` are those in force, none without an access file; `count` gets the result of each reload, `allowed`
    or `denied`. Raises InvalidAccessFile."""

    def __init__(self, path: str, count: Count) -> None:
        self._file = WatchedAccessFile(Path(path)) if path else None
        self._count = count
        self.principals = Principals() if self._file is None else self._file.loaded.principals

    def poll(self, now: float) -> bool:
        """Take what the file has now (Unix s); return whether that is something else. A bad file leaves all as it is,
        logged once for each content."""
        read = None if self._file is None else self._file.poll(now)
        if read is None:
            return False
        if isinstance(read, InvalidAccessFile):
            self._count("denied")
            log.error(
                "the access file is not taken, and what it had before stays in force: %s; correct it", read
            )
            return False
        self._count("allowed")
        for warning in read.warnings:
            log.warning("the access file: %s; take a longer one", warning)
        log.info("the access file was taken: %d principals", len(read.principals))
        self.principals = read.principals
        return True
