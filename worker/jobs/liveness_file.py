"""The liveness file of a process without a port: its loop touches the file each time."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["LONGEST_SILENCE_S", "silent_s", "touch"]

LONGEST_SILENCE_S: Final = 120.0
"""The longest silence of a healthy process: a job may take 60 s, and RQ waits 25 s on a connection that is dead."""


def touch(file: str) -> None:
    """Touch the liveness file, if there is one."""
    if file:
        with suppress(OSError):  # then the probe finds it old
            Path(file).touch()


def silent_s(file: str) -> float:
    """Return the seconds since the file was touched last; infinite before the first time."""
    try:
        return max(time.time() - Path(file).stat().st_mtime, 0.0)
    except OSError:
        return float("inf")
