"""The memory that connections hold: requests under way and answers that peers have not read, of a worker together."""

from typing import Final

from api.transport.connection import Connection
from api.transport.waiting import Waiting

__all__ = ["HeldMemory"]

LITTLE_BYTES: Final = 1 << 16
"""Bytes of a connection that is not closed for them: the number of such connections is bounded."""


class HeldMemory:
    """Within `most` bytes; a single answer may have more."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held = 0

    def count(self, connection: Connection) -> None:
        """Count a connection as it is now."""
        held = connection.held
        self._held += held - connection.counted
        connection.counted = held

    def forget(self, connection: Connection) -> None:
        """Count a connection no more."""
        self._held -= connection.counted

    def too_large(self, waiting: Waiting) -> Connection | None:
        """Return the largest of those that wait, if it has to go: None too where only its own is beyond the limit."""
        if self._held <= self.most:
            return None
        largest = waiting.largest()
        if largest is None or largest.held < LITTLE_BYTES or self._held - largest.held < self.most // 2:
            return None
        return largest
