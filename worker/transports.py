"""What carries a connection's bytes: the compiled epoll transport where it is built, else uvloop's."""

import asyncio
import logging
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING, Protocol

from registry.options import Options
from worker.connection import Connection
from worker.known_frames import KnownFrames

if TYPE_CHECKING:
    from worker.epoll import Poller

__all__ = ["Transports", "transports"]

log = logging.getLogger(__name__)

Known = Callable[[], KnownFrames | None]
Failed = Callable[[Connection], None]


class Transports(Protocol):
    """Of all connections of a worker."""

    def open(self, accepted: socket, connection: Connection) -> None:
        """Carry this connection over an accepted socket."""

    def close(self) -> None:
        """Once there are no connections."""


def transports(options: Options, loop: asyncio.AbstractEventLoop, known: Known, failed: Failed) -> Transports:
    """Those to use. `known` gives the requests that may be answered by their bytes, None for none; `failed` is told
    of connections that could not be opened."""
    if options.epoll_transport:
        try:
            from worker.epoll import Poller
        except ImportError:
            log.info("the compiled transport is not built")
        else:
            return EpollTransports(Poller(loop, known), failed)
    return LoopTransports(loop, failed)


class EpollTransports:
    """Of `worker/epoll.pyx`."""

    def __init__(self, poller: "Poller", failed: Failed) -> None:
        self._poller = poller
        self._failed = failed

    def open(self, accepted: socket, connection: Connection) -> None:
        """See `Transports`."""
        try:
            self._poller.open(accepted, connection)
        except OSError:
            accepted.close()
            self._failed(connection)

    def close(self) -> None:
        """See `Transports`."""
        self._poller.stop()


class LoopTransports:
    """Of the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, failed: Failed) -> None:
        self._loop = loop
        self._failed = failed
        self._arriving: dict[asyncio.Task[object], Connection] = {}

    def open(self, accepted: socket, connection: Connection) -> None:
        """See `Transports`."""
        arriving = self._loop.create_task(self._connected(accepted, connection))
        self._arriving[arriving] = connection
        arriving.add_done_callback(self._arrived)

    def close(self) -> None:
        """See `Transports`."""

    async def _connected(self, accepted: socket, connection: Connection) -> object:
        return await self._loop.connect_accepted_socket(lambda: connection, accepted)

    def _arrived(self, arriving: asyncio.Task[object]) -> None:
        connection = self._arriving.pop(arriving)
        if arriving.cancelled() or arriving.exception():
            self._failed(connection)
