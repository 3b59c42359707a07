"""All connections of a worker: their admission, their number, and the end of those that are silent for too long."""

import asyncio
import itertools
import logging
from collections.abc import Callable
from heapq import nsmallest
from math import inf
from socket import IPPROTO_TCP, SO_RCVBUF, SO_SNDBUF, SOL_SOCKET, TCP_NODELAY, socket
from typing import Any, Final

from registry.options.catalogue import Options
from worker.logs.rate_limited_log import RateLimitedLog
from worker.peer import host_of
from worker.transport.connection import IDLE, Connection
from worker.transport.connection_balance import ConnectionBalance
from worker.transport.ends import End
from worker.transport.handshakes import Handshakes
from worker.transport.host_limit import HostFull, HostLimit
from worker.transport.owner import Limits, Service
from worker.transport.proxy_protocol import address_text
from worker.transport.reply_memory import ReplyMemory
from worker.transport.time_slices import TimeSlices
from worker.transport.tls import ServerTls
from worker.transport.transports import Answered, transports
from worker.transport.trusted_proxies import Introduced, TrustedProxies

__all__ = ["Connections", "limits_of"]

log = RateLimitedLog(logging.getLogger(__name__))

FIRST_REQUEST_S: Final = 1.0
"""For how long the first request of an accepted connection is waited for when the worker ends: to close before it is
read would fail a client that was accepted, with a reset if its bytes have come."""


def limits_of(options: Options) -> Limits:
    """Return the bounds that the options set."""
    return Limits(
        idle_s=max(0, options.server_channel_max_idle_time_seconds),
        connections=options.max_connections,
        unread_bytes=options.write_buffer_limit_bytes,
        long_replies_bytes=options.unread_answers_limit_bytes,
    )


class Connections:
    """The connections of one worker, on one loop."""

    def __init__(
        self,
        options: Options,
        limits: Limits,
        service: Service,
        tls: ServerTls,
        loop: asyncio.AbstractEventLoop,
        balance: ConnectionBalance,
    ) -> None:
        self.limits = limits
        self.handshakes = Handshakes()
        self.reply_memory = ReplyMemory(limits.long_replies_bytes)
        self.service = service
        self.tls = tls
        self.proxy_protocol = options.proxy_protocol
        self.bytes_read = 0
        self.asked = 0
        """Open connections over which a request has come, or the beginning of one."""
        self.time: Callable[[], float] = loop.time
        self.call_soon: Callable[[Callable[[], None]], object] = loop.call_soon
        self.time_slices = TimeSlices(loop.call_soon)
        self.shutting_down = False
        """Whether connections end because this worker does, so that their owners must not be released."""
        self._transports = transports(options, loop, service.cached, self._never_opened)
        self._balance = balance
        self._hosts = HostLimit(options.max_connections_per_ip, service.failures)
        self._proxies = TrustedProxies(options, self._hosts)
        self._socket_options = _socket_options(options)
        self._ids = itertools.count(1)
        self.by_id: dict[str, Connection] = {}
        self._admitted = 0
        service.when_rights_change(self._void_rights)

    def __len__(self) -> int:
        """How many there are, those that are opening included."""
        return self._admitted

    def admit(self, accepted: socket, address: Any) -> None:
        """Open an accepted connection; one over the limit is closed at once."""
        self.service.counters.connection_events.add("accepted")
        text = address_text(*address[:2]) if isinstance(address, tuple) else f"unix:{accepted.fileno()}"
        if 0 < self.limits.connections <= len(self):
            self._refused(accepted, "maxConnections")
            log.warning(
                "connection of %s refused: there are %d; raise maxConnections or ulimit -n, or run more workers",
                text,
                len(self),
            )
            return
        host = host_of(text)
        try:
            self._hosts.enter(host, limited=host not in self._proxies)
        except HostFull as full:
            self._refused(accepted, full.option)
            log.warning(
                "connection of %s refused: %s; find out what connects there, or list a balancer in proxyTrustedCidrs",
                text,
                full,
            )
            return
        try:
            accepted.setblocking(False)
            for level, name, value in self._socket_options if isinstance(address, tuple) else ():
                accepted.setsockopt(level, name, value)
        except OSError:  # already gone
            accepted.close()
            self._hosts.leave(host)
            return
        self._count(1)
        connection = Connection(str(next(self._ids)), text, self)
        connection.via = self._proxies.via(host)
        self._transports.open(accepted, connection)

    def opened(self, connection: Connection) -> None:
        """Called by a connection once it has its transport."""
        self.by_id[connection.id] = connection
        self._notify(connection, lambda: self.service.connected(connection))

    def introduced(self, connection: Introduced, source: str | None) -> None:
        """See `Owner`."""
        self._proxies.introduce(connection, source)

    def disconnected(self, connection: Connection) -> None:
        """Called by a connection when its transport is gone."""
        self._count(-1)
        self._hosts.leave(connection.host)
        self.handshakes.end(connection)
        self.by_id.pop(connection.id, None)
        shutting_down = self.shutting_down
        self._notify(connection, lambda: self.service.disconnected(connection, shutting_down=shutting_down))

    def sweep(self) -> None:
        """End what is idle, or takes too long to begin or to end."""
        for reading, slowness in self.service.frame_memory.too_slow():
            reading.abort(slowness)
        now = self.time()
        quiet_since = now - self.limits.idle_s if self.limits.idle_s else -inf
        for connection in [c for c in self.by_id.values() if c.active_at <= quiet_since or c.deadline <= now]:
            if not (reason := connection.overdue(now)):
                continue
            if connection.closed:
                connection.abort(reason)
            else:
                connection.close(reason, End.IDLE if reason == IDLE else End.SLOW)

    @property
    def sweep_every_s(self) -> float:
        """How often to sweep, so that nothing stays more than a second, or an eighth of a short limit, too long."""
        return min(0.5, *(s / 8 for s in (self.limits.idle_s, self.limits.opening_s) if s))

    @property
    def busy(self) -> int:
        """Connections with requests or replies under way; of one that was just accepted the first request is."""
        since = self._new_since
        return sum(_is_busy(c, since) for c in self.by_id.values())

    def begin_go_away(self) -> None:
        """Answer requests with GO_AWAY from now on, but on connections that have just come."""
        since = self._new_since
        for connection in self.by_id.values():
            connection.go_away = not _is_new(connection, since)

    def close_quiet(self, keep: int, reason: str) -> None:
        """Close connections that have nothing under way, the longest quiet first, until `keep` are left."""
        since = self._new_since
        quiet = (c for c in self.by_id.values() if not (c.closed or _is_busy(c, since)))
        for connection in nsmallest(len(self.by_id) - keep, quiet, key=lambda c: c.active_at):
            connection.close(reason, End.DRAINED)

    def close(self) -> None:
        """Release the transports, once all connections have ended."""
        self._transports.close()

    def close_all(self, reason: str) -> None:
        """Close every connection, after what was sent has gone out."""
        for connection in list(self.by_id.values()):
            connection.close(reason, End.DRAINED)

    def abort_all(self, reason: str) -> None:
        """End every connection at once."""
        for connection in list(self.by_id.values()):
            connection.abort(reason, End.DRAINED)

    @property
    def traffic(self) -> Answered:
        """Return how many bytes were ever read from peers and written to them, and lookups that transports answered."""
        read, written, lookups = self._transports.answered
        return Answered(self.bytes_read + read, self.reply_memory.bytes_written + written, lookups)

    def _void_rights(self) -> None:
        """Have the next request of each connection judged by what is in force now."""
        for connection in self.by_id.values():
            connection.rights = 0

    def _refused(self, accepted: socket, option: str) -> None:
        accepted.close()
        self.ended(End.LIMIT)
        self.service.counters.registrations.limited(option)

    def ended(self, end: End) -> None:
        """Count a connection that ends, or does not begin."""
        self.service.counters.connection_events.add(end)

    def unreadable(self, reason: str) -> None:
        """Count bytes that are no frame."""
        self.service.counters.decode_errors.add(reason)

    @property
    def _new_since(self) -> float:
        return self.time() - FIRST_REQUEST_S

    def _count(self, by: int) -> None:
        self._admitted += by
        self._balance.count(self._admitted)

    def _never_opened(self, connection: Connection) -> None:
        if not connection.closed and connection.id not in self.by_id:
            self._count(-1)
            self._hosts.leave(connection.host)
        log.warning(
            "connection %s of %s failed while it opened; a client connects again by itself",
            connection.id,
            connection.address,
        )

    def _notify(self, connection: Connection, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception as error:
            log.warning(
                "start or end of connection %s of %s met a fault of this server; report it",
                connection.id,
                connection.address,
                error=error,
            )


def _is_new(connection: Connection, since: float) -> bool:
    return connection.unasked and connection.active_at > since


def _is_busy(connection: Connection, since: float) -> bool:
    return connection.busy or _is_new(connection, since)


def _socket_options(options: Options) -> list[tuple[int, int, int]]:
    """Return socket options as Netty's server sets them; a buffer size of 0 is left to the system."""
    sizes = ((SO_SNDBUF, options.server_socket_snd_buf_size), (SO_RCVBUF, options.server_socket_rcv_buf_size))
    return [(IPPROTO_TCP, TCP_NODELAY, 1), *((SOL_SOCKET, name, size) for name, size in sizes if size > 0)]
