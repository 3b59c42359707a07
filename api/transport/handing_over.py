"""Connections that leave a worker's loop behind the head of their answer, and come back behind its end."""

from collections.abc import Callable

from api.transport.answer import Taker
from api.transport.connection import Connection

__all__ = ["HandingOver"]


class HandingOver:
    """Those of one worker; `come_back` is called from any thread."""

    def __init__(self, come_back: Callable[[Connection], None]) -> None:
        self._come_back = come_back
        self._takers: set[Taker] = set()

    def hand_over(self, connection: Connection) -> bool:
        """Give a connection to the taker that its view named; return whether one was."""
        handover, connection.sock.handover = connection.sock.handover, None
        if handover is None:
            return False
        self._takers.add(handover.taker)
        handover.taker.take(
            connection.peer, connection.sock, handover.request, lambda: self._come_back(connection)
        )
        return True

    def stop(self) -> None:
        """Have the takers end their connections."""
        for taker in self._takers:
            taker.stop()
