"""Taking connections off listening sockets that several workers share."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from socket import socket
from typing import Any, Final

from worker.rationed_log import RationedLog

__all__ = ["Acceptor", "Admit"]

log = RationedLog(logging.getLogger(__name__))

Admit = Callable[[socket, Any], None]
PAUSE_S: Final = 0.1


class Acceptor:
    """Gives each connection of `sockets` (listening, non-blocking) to `admit` with the peer's address."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sockets: Sequence[socket], admit: Admit) -> None:
        self._loop = loop
        self._sockets = sockets
        self._admit = admit
        self._accepting = False

    def start(self) -> None:
        self._accepting = True
        for listener in self._sockets:
            self._loop.add_reader(listener.fileno(), self._ready, listener)

    def stop(self) -> None:
        """Take no more, and let go of the sockets: the last process to do so makes the system refuse."""
        if self._accepting:
            self._accepting = False
            for listener in self._sockets:
                self._loop.remove_reader(listener.fileno())
        for listener in self._sockets:
            listener.close()

    def _ready(self, listener: socket) -> None:
        """Take one connection: a worker that took all that wait would leave none to its idle siblings."""
        try:
            accepted, address = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # a sibling was quicker, or the peer is gone
        except OSError as error:
            self._wait(listener, error)
            return
        self._admit(accepted, address)

    def _wait(self, listener: socket, error: OSError) -> None:
        """Nothing can be accepted for the moment; the socket stays ready, so look away for a while."""
        log.warning("cannot accept connections: %s", error)
        self._loop.remove_reader(listener.fileno())
        self._loop.call_later(PAUSE_S, self._resume, listener)

    def _resume(self, listener: socket) -> None:
        if self._accepting:
            self._loop.add_reader(listener.fileno(), self._ready, listener)
