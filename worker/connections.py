"""All connections of a worker: who may come in, who has been silent for too long."""

import asyncio
import itertools
import logging
from collections.abc import Callable
from heapq import nsmallest
from math import inf
from socket import IPPROTO_TCP, SO_RCVBUF, SO_SNDBUF, SOL_SOCKET, TCP_NODELAY, socket
from typing import Any

from registry.options import Options
from worker.connection import Connection, Dispatch, Limits
from worker.proxy_protocol import address_text
from worker.rationed_log import RationedLog
from worker.share import Share
from worker.tls import ServerTls
from worker.transports import transports

__all__ = ["Connections", "limits_of"]

log = RationedLog(logging.getLogger(__name__))


def limits_of(options: Options) -> Limits:
    """The bounds that the options set."""
    return Limits(
        idle_s=max(0, options.server_channel_max_idle_time_seconds),
        connections=options.max_connections,
        unread_bytes=options.write_buffer_limit_bytes,
    )


class Connections:
    """The connections of one worker, on one loop."""

    def __init__(
        self,
        options: Options,
        limits: Limits,
        service: Dispatch,
        tls: ServerTls,
        loop: asyncio.AbstractEventLoop,
        share: Share,
    ) -> None:
        self.limits = limits
        self.service = service
        self.tls = tls
        self.proxy_protocol = options.proxy_protocol
        self.time: Callable[[], float] = loop.time
        self.soon: Callable[[Callable[[], None]], object] = loop.call_soon
        self.shutting_down = False
        """Whether connections end because this worker does, so that their brokers must not be let go."""
        self._transports = transports(options, loop, service.known, self._never_opened)
        self._share = share
        self._socket_options = _socket_options(options)
        self._ids = itertools.count(1)
        self._open: dict[str, Connection] = {}
        self._admitted = 0

    def __len__(self) -> int:
        """Those that arrive or open included."""
        return self._admitted

    def admit(self, accepted: socket, address: Any) -> None:
        """Take an accepted connection in; one over the limit is closed at once."""
        text = address_text(*address[:2]) if isinstance(address, tuple) else f"unix:{accepted.fileno()}"
        if 0 < self.limits.connections <= len(self):
            accepted.close()
            log.warning("connection of %s refused: there are %d (maxConnections)", text, len(self))
            return
        try:
            accepted.setblocking(False)
            for level, name, value in self._socket_options if isinstance(address, tuple) else ():
                accepted.setsockopt(level, name, value)
        except OSError:  # already gone
            accepted.close()
            return
        self._count(1)
        connection = Connection(str(next(self._ids)), text, self)
        self._transports.open(accepted, connection)

    def joined(self, connection: Connection) -> None:
        """Called by a connection once it has its transport."""
        self._open[connection.id] = connection
        self._tell(connection, lambda: self.service.connected(connection))

    def lost(self, connection: Connection) -> None:
        """Called by a connection when its transport is gone."""
        self._count(-1)
        self._open.pop(connection.id, None)
        shutting_down = self.shutting_down
        self._tell(connection, lambda: self.service.disconnected(connection, shutting_down=shutting_down))

    def sweep(self) -> None:
        """End what is idle, or takes too long to begin or to end."""
        for reading in self.service.long_frames.late():
            reading.abort("a long frame took too long while others wait")
        now = self.time()
        quiet_since = now - self.limits.idle_s if self.limits.idle_s else -inf
        for connection in [c for c in self._open.values() if c.seen <= quiet_since or c.due <= now]:
            if not (reason := connection.overdue(now)):
                continue
            if connection.closed:
                connection.abort(reason)
            else:
                connection.close(reason)

    @property
    def sweep_every_s(self) -> float:
        """How often to sweep, so that nothing stays more than a second, or an eighth of a short limit, too long."""
        return min(0.5, *(s / 8 for s in (self.limits.idle_s, self.limits.opening_s) if s))

    @property
    def busy(self) -> int:
        """Connections with requests or answers under way."""
        return sum(c.busy for c in self._open.values())

    def send_away(self) -> None:
        """From now on tell the clients that are here to go elsewhere."""
        for connection in self._open.values():
            connection.leaving = True

    def let_go(self, keep: int, reason: str) -> None:
        """Close connections that have nothing under way, the longest quiet first, until `keep` are left."""
        quiet = (c for c in self._open.values() if not (c.closed or c.busy))
        for connection in nsmallest(len(self._open) - keep, quiet, key=lambda c: c.seen):
            connection.close(reason)

    def close(self) -> None:
        """Once all have ended."""
        self._transports.close()

    def close_all(self, reason: str) -> None:
        """Close every connection, after what was sent has gone out."""
        for connection in list(self._open.values()):
            connection.close(reason)

    def abort_all(self, reason: str) -> None:
        """End every connection at once."""
        for connection in list(self._open.values()):
            connection.abort(reason)

    def _count(self, by: int) -> None:
        self._admitted += by
        self._share.have(self._admitted)

    def _never_opened(self, connection: Connection) -> None:
        if not connection.closed and connection.id not in self._open:
            self._count(-1)
        log.warning("connection %s of %s never opened", connection.id, connection.address)

    def _tell(self, connection: Connection, told: Callable[[], None]) -> None:
        try:
            told()
        except Exception as error:
            log.warning("start or end of connection %s of %s", connection.id, connection.address, error=error)


def _socket_options(options: Options) -> list[tuple[int, int, int]]:
    """As Netty's server sets them; a buffer size of 0 is left to the system."""
    sizes = ((SO_SNDBUF, options.server_socket_snd_buf_size), (SO_RCVBUF, options.server_socket_rcv_buf_size))
    return [(IPPROTO_TCP, TCP_NODELAY, 1), *((SOL_SOCKET, name, size) for name, size in sizes if size > 0)]
