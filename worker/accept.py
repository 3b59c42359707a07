"""Taking connections off listening sockets that several workers share."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from math import inf
from socket import socket
from typing import Any, Final

from worker.rationed_log import RationedLog
from worker.share import Share

__all__ = ["Acceptor", "Admit"]

log = RationedLog(logging.getLogger(__name__))

Admit = Callable[[socket, Any], None]
PAUSE_S: Final = 0.1
LEAVE_S: Final = 0.001
"""For how long a connection is left to workers that have fewer; then it is taken all the same, one at a time."""
GAP_S: Final = 2 * LEAVE_S
"""When nothing waited for so long, what waits now has just come."""
PATIENCE_S: Final = 0.02
"""When connections have waited for so long without a gap, the others are too slow, or stopped: none is left to them."""


class Acceptor:
    """Gives each connection of `sockets` (listening, non-blocking) to `admit` with the peer's address."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sockets: Sequence[socket], admit: Admit, share: Share
    ) -> None:
        self._loop = loop
        self._sockets = sockets
        self._admit = admit
        self._share = share
        self._accepting = False
        self._left: dict[socket, float] = {}  # until when to others: in vain if it is ready again at once
        self._waiting_since = self._seen_waiting = 0.0

    def start(self) -> None:
        self._accepting = True
        self._share.begin()
        for listener in self._sockets:
            self._loop.add_reader(listener.fileno(), self._ready, listener)

    def stop(self) -> None:
        """Take no more, and let go of the sockets: the last process to do so makes the system refuse."""
        if self._accepting:
            self._accepting = False
            self._share.end()
            for listener in self._sockets:
                self._loop.remove_reader(listener.fileno())
        for listener in self._sockets:
            listener.close()

    def _ready(self, listener: socket) -> None:
        """Take one connection: a worker that took all that wait would leave none to its idle siblings."""
        if self._leaves(listener):
            self._look_away(listener, LEAVE_S)
            return
        try:
            accepted, address = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # a sibling was quicker, or the peer is gone
        except OSError as error:
            self._wait(listener, error)
            return
        self._admit(accepted, address)

    def _leaves(self, listener: socket) -> bool:
        """Whether a waiting connection is for the others first."""
        now = self._loop.time()
        if now - self._left.pop(listener, -inf) <= GAP_S or not self._share.exceeded:
            return False
        if now - self._seen_waiting > GAP_S:
            self._waiting_since = now
        self._seen_waiting = now
        if now - self._waiting_since > PATIENCE_S:
            return False
        self._left[listener] = now + LEAVE_S
        return True

    def _wait(self, listener: socket, error: OSError) -> None:
        """Nothing can be accepted for the moment; the socket stays ready."""
        log.warning("cannot accept connections: %s", error)
        self._look_away(listener, PAUSE_S)

    def _look_away(self, listener: socket, for_s: float) -> None:
        self._loop.remove_reader(listener.fileno())
        self._loop.call_later(for_s, self._resume, listener)

    def _resume(self, listener: socket) -> None:
        if self._accepting:
            self._loop.add_reader(listener.fileno(), self._ready, listener)
