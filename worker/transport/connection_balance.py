"""How many connections each worker of one gunicorn master has, so that none takes far more than the others.

The counts lie in memory that the workers have in common, a place each; a worker locks the byte of its place in the file
behind it. The system releases that lock with the process, however it ends: the count of a dead worker is ignored.
"""

import fcntl
import mmap
import os
import tempfile
from typing import Final

__all__ = ["ConnectionBalance", "ConnectionCounts"]

PLACES: Final = 256
"""Workers that can have one; any further ones accept whatever comes."""
MARGIN: Final = 2
"""Connections that a worker may have beyond the least of the others before it defers to them."""
WORD: Final = 4
LAST: Final = 2**31 - 1
"""In place of a count: accept only what no other worker accepts."""


class ConnectionCounts:
    """The shared counts; made in the master, before there are workers."""

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            self.file = os.memfd_create("connections")
        else:
            with tempfile.TemporaryFile() as file:
                self.file = os.dup(file.fileno())
        os.ftruncate(self.file, PLACES * WORD)
        # Of each place 0 when it is free, else one more than the connections.
        self.numbers = memoryview(mmap.mmap(self.file, PLACES * WORD)).cast("i")

    def acquire(self, place: int) -> bool:
        """Lock a place; False if another process has it."""
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            return False
        return True

    def release(self, place: int) -> None:
        """Clear and unlock a place."""
        self.numbers[place] = 0
        fcntl.lockf(self.file, fcntl.LOCK_UN, 1, place)


class ConnectionBalance:
    """One worker's count among all; it has a place while the worker accepts."""

    def __init__(self, counts: ConnectionCounts) -> None:
        self._counts = counts
        self._place: int | None = None
        self._connections = 0
        self._deferring = False

    def begin(self) -> None:
        """Have the others defer to this worker while it has fewer connections than they."""
        self._place = next((place for place in range(PLACES) if self._counts.acquire(place)), None)
        self._publish()

    def defer_to_others(self) -> None:
        """Defer to the others from now on, if there are any."""
        self._deferring = True
        self._publish()

    def end(self) -> None:
        """Give up the place."""
        if self._place is not None:
            self._counts.release(self._place)
            self._place = None

    def count(self, connections: int) -> None:
        """Publish how many connections this worker has now."""
        self._connections = connections
        self._publish()

    @property
    def exceeded(self) -> bool:
        """Whether a living worker has clearly fewer connections than this one."""
        numbers = self._counts.numbers
        if self._place is None:
            return False
        mine = numbers[self._place]
        for place, number in enumerate(numbers.tolist()):
            if not 0 < number < mine - MARGIN:
                continue
            if not self._counts.acquire(place):
                return True
            self._counts.release(place)  # its worker has died
        return False

    def _publish(self) -> None:
        if self._place is not None:
            self._counts.numbers[self._place] = LAST if self._deferring else 1 + self._connections
