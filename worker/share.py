"""How many connections each worker of one gunicorn master has, so that none takes much more than its share.

The numbers lie in memory that the workers share, a place each; who holds a place locks its byte of the file behind it.
The system takes that lock away with the process, however it ends, so what a dead worker has left counts for nothing.
"""

import fcntl
import mmap
import os
import tempfile
from typing import Final

__all__ = ["Board", "Share"]

PLACES: Final = 256
"""Workers that can have one; any further ones take what they get."""
MARGIN: Final = 2
"""Connections that a worker may have beyond the least of the others before it leaves them the next."""
WORD: Final = 4
LAST: Final = 2**31 - 1
"""In place of a number: take only what nobody else takes."""


class Board:
    """Made in the master, before there are workers."""

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            self.file = os.memfd_create("connections")
        else:
            with tempfile.TemporaryFile() as file:
                self.file = os.dup(file.fileno())
        os.ftruncate(self.file, PLACES * WORD)
        # Of each place 0 when it is free, else one more than the connections.
        self.numbers = memoryview(mmap.mmap(self.file, PLACES * WORD)).cast("i")

    def take(self, place: int) -> bool:
        """Whether no other process had it; then this one has it."""
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            return False
        return True

    def leave(self, place: int) -> None:
        self.numbers[place] = 0
        fcntl.lockf(self.file, fcntl.LOCK_UN, 1, place)


class Share:
    """One worker's part of all connections; it has a place on the board while it accepts."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._place: int | None = None
        self._connections = 0
        self._last = False

    def begin(self) -> None:
        """From now on the others leave this worker connections while it has fewer than they."""
        self._place = next((place for place in range(PLACES) if self._board.take(place)), None)
        self._tell()

    def be_last(self) -> None:
        """From now on leave each connection to the others, if there are any."""
        self._last = True
        self._tell()

    def end(self) -> None:
        if self._place is not None:
            self._board.leave(self._place)
            self._place = None

    def have(self, connections: int) -> None:
        """So many are here now."""
        self._connections = connections
        self._tell()

    @property
    def exceeded(self) -> bool:
        """Whether a living worker has clearly fewer connections than this one."""
        numbers = self._board.numbers
        if self._place is None:
            return False
        mine = numbers[self._place]
        for place, number in enumerate(numbers.tolist()):
            if not 0 < number < mine - MARGIN:
                continue
            if not self._board.take(place):
                return True
            self._board.leave(place)  # its worker has died
        return False

    def _tell(self) -> None:
        if self._place is not None:
            self._board.numbers[self._place] = LAST if self._last else 1 + self._connections
