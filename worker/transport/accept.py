"""Accepting connections from listening sockets that several workers have in common."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from math import inf
from socket import socket
from typing import Any, Final

from worker.logs.rate_limited_log import RateLimitedLog
from worker.transport import open_files
from worker.transport.connection_balance import ConnectionBalance

__all__ = ["Acceptor", "Admit"]

log = RateLimitedLog(logging.getLogger(__name__))

Admit = Callable[[socket, Any], None]
PAUSE_S: Final = 0.1
DEFER_S: Final = 0.001
"""For how long a worker defers to those that have fewer connections; then it accepts all the same, one at a time."""
GAP_S: Final = 2 * DEFER_S
"""When no connection waited for so long, the one that waits now has just come."""
PATIENCE_S: Final = 0.02
"""When connections have waited for so long without a gap, the others are too slow, or stopped: accept all."""


class Acceptor:
    """Gives each connection of `sockets` (listening, non-blocking) to `admit` with the peer's address."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sockets: Sequence[socket],
        admit: Admit,
        balance: ConnectionBalance,
    ) -> None:
        self._loop = loop
        self._sockets = sockets
        self._admit = admit
        self._balance = balance
        self._accepting = False
        self._deferred: dict[socket, float] = {}  # until when: in vain if it is ready again at once
        self._waiting_since = self._seen_waiting = 0.0
        self._short = False  # of files: the last connection got one of the reserve

    def start(self) -> None:
        self._accepting = True
        self._balance.begin()
        for listener in self._sockets:
            self._loop.add_reader(listener.fileno(), self._ready, listener)

    def stop(self) -> None:
        """Accept no more, and close the sockets: the last process to do so makes the system refuse."""
        if self._accepting:
            self._accepting = False
            self._balance.end()
            for listener in self._sockets:
                self._loop.remove_reader(listener.fileno())
        for listener in self._sockets:
            listener.close()

    def _ready(self, listener: socket) -> None:
        """Accept one connection: a worker that accepted all that wait would leave none to its idle siblings."""
        if self._defers(listener):
            self._pause(listener, DEFER_S)
            return
        if self._short and not open_files.reserve_is_whole(listener.fileno()):
            self._back_off(
                listener, f"the limit of open files is {open_files.limit()}, the rest is the store's"
            )
            return
        try:
            accepted, address = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another worker was quicker, or the peer is gone
        except OSError as error:
            self._back_off(listener, error)
            return
        self._short = accepted.fileno() >= open_files.left_to_connections()
        self._admit(accepted, address)

    def _defers(self, listener: socket) -> bool:
        """Whether the other workers are to accept a waiting connection first."""
        now = self._loop.time()
        if now - self._deferred.pop(listener, -inf) <= GAP_S or not self._balance.exceeded:
            return False
        if now - self._seen_waiting > GAP_S:
            self._waiting_since = now
        self._seen_waiting = now
        if now - self._waiting_since > PATIENCE_S:
            return False
        self._deferred[listener] = now + DEFER_S
        return True

    def _back_off(self, listener: socket, reason: object) -> None:
        """Pause: nothing can be accepted for the moment, and the socket stays ready."""
        log.warning(
            "cannot accept connections: %s; retries every %g s; raise the limit of open files if it is reached",
            reason,
            PAUSE_S,
        )
        self._pause(listener, PAUSE_S)

    def _pause(self, listener: socket, for_s: float) -> None:
        self._loop.remove_reader(listener.fileno())
        self._loop.call_later(for_s, self._resume, listener)

    def _resume(self, listener: socket) -> None:
        if self._accepting:
            self._loop.add_reader(listener.fileno(), self._ready, listener)
