"""A worker that begins while the access file has an error: it does not know the principals, so it serves nothing, and
waits. To end would be no better: another one would begin in its place at once, and again."""

import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from access.access_file import InvalidAccessFile, load
from access.live import POLL_S

__all__ = ["await_access_file"]

ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)

log = logging.getLogger(__name__)


def await_access_file(path: str, notify: Callable[[], None]) -> None:
    """Return once the access file, "" for none, can be taken; until then call `notify`, which tells the master that
    this worker lives, each POLL_S seconds. An error is logged once for its text. A signal that ends workers, and the
    end of the master, end the process."""
    logged, master = None, os.getppid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        while (refused := _refused(path)) is not None:
            if refused != logged:
                log.error(
                    "this worker serves nothing until the access file can be taken: %s; correct it", refused
                )
                logged = refused
            notify()
            if signal.sigtimedwait(ENDING, POLL_S) is not None or os.getppid() != master:
                sys.exit(0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if logged is not None:
        log.info("the access file was taken; this worker begins to serve")


def _refused(path: str) -> str | None:
    try:
        if path:
            load(Path(path))
    except InvalidAccessFile as error:
        return str(error)
    return None
