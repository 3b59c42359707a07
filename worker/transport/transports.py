"""What carries a connection's bytes: the compiled epoll transport where it is built, else uvloop's."""

import asyncio
import logging
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING, NamedTuple, Protocol

from registry.options.catalogue import Options
from worker.cache.cached_requests import CachedRequests
from worker.transport.connection import Connection

if TYPE_CHECKING:
    from worker.transport.epoll import Poller

__all__ = ["Answered", "Transports", "transports"]

log = logging.getLogger(__name__)

Cached = Callable[[], CachedRequests | None]
Failed = Callable[[Connection], None]


class Answered(NamedTuple):
    """Bytes of requests and of their replies, and how many of the requests were lookups."""

    read: int = 0
    written: int = 0
    lookups: int = 0


class Transports(Protocol):
    """The transports of all connections of a worker."""

    def open(self, accepted: socket, connection: Connection) -> None:
        """Carry this connection over an accepted socket."""

    def close(self) -> None:
        """Release what is shared, once there are no connections."""

    @property
    def answered(self) -> Answered:
        """Return what was answered in the transport itself."""


def transports(
    options: Options, loop: asyncio.AbstractEventLoop, cached: Cached, failed: Failed
) -> Transports:
    """Return the transports to use. `cached` gives the cached requests, None while none may be answered; `failed` gets
    connections that could not be opened."""
    if options.epoll_transport:
        try:
            from worker.transport.epoll import Poller
        except ImportError:
            log.info(
                "the compiled transport is not built, uvloop's is used; `python hatch_build.py` builds it"
            )
        else:
            return EpollTransports(Poller(loop, cached), failed)
    return LoopTransports(loop, failed)


class EpollTransports:
    """The transports of `worker/transport/epoll.pyx`."""

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

    @property
    def answered(self) -> Answered:
        """See `Transports`."""
        return Answered(self._poller.read, self._poller.written, self._poller.lookups)


class LoopTransports:
    """Transports of the event loop: asyncio's or uvloop's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, failed: Failed) -> None:
        self._loop = loop
        self._failed = failed
        self._opening: dict[asyncio.Task[object], Connection] = {}

    def open(self, accepted: socket, connection: Connection) -> None:
        """See `Transports`."""
        opening = self._loop.create_task(self._connected(accepted, connection))
        self._opening[opening] = connection
        opening.add_done_callback(self._opened)

    def close(self) -> None:
        """See `Transports`."""

    @property
    def answered(self) -> Answered:
        """See `Transports`."""
        return Answered()

    async def _connected(self, accepted: socket, connection: Connection) -> object:
        return await self._loop.connect_accepted_socket(lambda: connection, accepted)

    def _opened(self, opening: asyncio.Task[object]) -> None:
        connection = self._opening.pop(opening)
        if opening.cancelled() or opening.exception():
            self._failed(connection)
