"""The memory that connections hold: requests under way and answers that peers have not read, of a worker together."""

import logging
from typing import Final

from api.transport.connection import Connection
from api.transport.limits import Phase
from api.transport.refusal import Refusal
from api.transport.waiting import Waiting
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["HeldMemory"]

log = RateLimitedLog(logging.getLogger(__name__))

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
        connection.counted = 0

    def refusal_of(self, connection: Connection) -> Refusal | None:
        """Return the refusal of a connection that has to go, None of an answer that is dropped, which is logged."""
        if connection.phase in (Phase.HEAD, Phase.BODY):
            text = f"requests under way hold over {self.most} bytes (httpHeldBytes)"
            return Refusal(503, text, "httpHeldBytes")
        log.warning(
            "an answer of %d bytes that %s did not read was dropped; raise httpHeldBytes if it was not hostile",
            connection.held,
            connection.client,
        )
        return None

    def report_unread(self, connection: Connection, seconds: float) -> None:
        """Log that an answer was not read in time."""
        log.warning(
            "%s left %d bytes of an answer unread for %g s; raise httpAnswerTimeoutMillis if it is only slow",
            connection.client,
            connection.sock.held,
            seconds,
        )

    def too_large(self, waiting: Waiting) -> Connection | None:
        """Return the largest of those that wait, if it has to go: None too where only its own is beyond the limit."""
        if self._held <= self.most:
            return None
        largest = waiting.largest()
        if largest is None or largest.held < LITTLE_BYTES or self._held - largest.held < self.most // 2:
            return None
        return largest
