"""A sign of life of a process that nobody connects to: a file that it touches each time its loop turns."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["LONGEST_SILENCE_S", "beat", "silent_s"]

LONGEST_SILENCE_S: Final = 120.0
"""Of a process that is well: a job may take 60 s, and RQ waits 25 s on a connection that is dead."""


def beat(file: str) -> None:
    """Touch it, if there is one to touch."""
    if file:
        with suppress(OSError):  # whoever looks at the file will find it old
            Path(file).touch()


def silent_s(file: str) -> float:
    """Seconds since the last beat; infinite before the first."""
    try:
        return max(time.time() - Path(file).stat().st_mtime, 0.0)
    except OSError:
        return float("inf")
