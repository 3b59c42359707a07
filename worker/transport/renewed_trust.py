"""New certificates of signers: connections that were trusted by the old ones are closed, spread, to come back."""

import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from worker.transport.connection import Connection
from worker.transport.ends import End

__all__ = ["CLOSED_WITHIN_S", "RenewedTrust"]

CLOSED_WITHIN_S: Final = 30.0
SPREAD_S: Final = 25.0
"""Over how long they are closed, one after the other: all at once would come back at once."""
MARGIN_S: Final = 2.0
"""Before the end, when those are closed that still wait for replies."""
REASON: Final = "the trusted certificates have changed"

log = logging.getLogger(__name__)


class _Due(NamedTuple):
    """When a connection is closed (s): `at` if it waits for no reply then, in any case at `latest`."""

    connection: Connection
    at: float
    latest: float


class RenewedTrust:
    """`connections` returns all of a worker, `comes_back` gets each before it is closed. `clock` is in seconds."""

    def __init__(
        self,
        connections: Callable[[], Iterable[Connection]],
        comes_back: Callable[[Connection], None],
        clock: Callable[[], float],
    ) -> None:
        self._connections = connections
        self._comes_back = comes_back
        self._clock = clock
        self._due: list[_Due] = []

    def begin(self) -> None:
        """Have all connections closed that have shown a certificate, or may be about to."""
        begun = {due.connection for due in self._due}  # another change soon after puts none of them off
        relied = filter(_relied_on_trust, self._connections())
        verified = [connection for connection in relied if connection not in begun]
        now = self._clock()
        self._due += [
            _Due(connection, now + SPREAD_S * number / len(verified), now + CLOSED_WITHIN_S - MARGIN_S)
            for number, connection in enumerate(verified, 1)
        ]
        log.info(
            "TLS: %s: %d connections with certificates are closed within %g s, and come back by themselves",
            REASON,
            len(verified),
            CLOSED_WITHIN_S,
        )

    def sweep(self) -> None:
        """Close those that are due, if it can be when they have all replies."""
        now = self._clock()
        later = []
        for due in self._due:
            connection = due.connection
            if now < due.at or (connection.busy and now < due.latest):
                later.append(due)
            elif not connection.closed:
                self._comes_back(connection)
                connection.close(REASON, End.DRAINED)
        self._due = later


def _relied_on_trust(connection: Connection) -> bool:
    tls = connection.tls
    return tls is not None and (not tls.established or tls.has_certificate)
