"""What a connection needs of its worker: bounds, the service that answers, the loop's clock."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from access.failures import Failures
from rocketmq_remoting.command import Command
from worker.cache.cached_requests import CachedRequests, RepeatCheck
from worker.counters import Counters
from worker.overload.known_hosts import KnownHosts
from worker.peer import Peer
from worker.transport.frame_memory import FrameMemory
from worker.transport.handshakes import Handshakes
from worker.transport.reply_memory import ReplyMemory
from worker.transport.time_slices import TimeSlices
from worker.transport.tls import ServerTls
from worker.transport.trusted_proxies import Introduced

__all__ = ["Limits", "Owner", "Service"]


class Service(Protocol):
    """What answers the requests: `worker.service.Service`."""

    @property
    def counters(self) -> Counters: ...

    failures: Failures
    frame_memory: FrameMemory
    known_hosts: KnownHosts

    def handle(self, command: Command, peer: Peer) -> None: ...
    def cached(self) -> CachedRequests | None: ...
    def cached_for(self, peer: Peer) -> CachedRequests | None: ...
    def check_repeat(self, check: RepeatCheck, peer: Peer) -> None: ...
    def connected(self, peer: Peer) -> None: ...  # its address may change until it is identified
    def identified(self, peer: Peer) -> None: ...
    def when_rights_change(self, changed: Callable[[], None]) -> None: ...
    def disconnected(self, peer: Peer, *, shutting_down: bool) -> None: ...


class Limits(msgspec.Struct, frozen=True):
    """Bounds of each connection of a worker, and of their number."""

    idle_s: float
    """Seconds without a byte read or written after which a connection is closed; 0 is never."""
    connections: int
    """How many at once; 0 is any number."""
    unread_bytes: int
    """A peer is cut off when it has left more than so many bytes of replies unread and another is due."""
    opening_s: float = 10.0
    """Seconds for a PROXY header or a TLS handshake, once begun."""
    closing_s: float = 5.0
    """Seconds for a peer to take the last replies of a connection that is closed."""
    long_replies_bytes: int = 64 << 20
    """Long replies that all peers have left unread, beyond which one of these is cut off."""


class Owner(Protocol):
    """What all connections of a worker have in common: `worker.transport.connections.Connections`."""

    limits: Limits
    handshakes: Handshakes
    reply_memory: ReplyMemory
    service: Service
    tls: ServerTls
    proxy_protocol: bool
    asked: int
    time: Callable[[], float]

    def introduced(self, connection: Introduced, source: str | None) -> None:
        """Take the `ip:port` of a PROXY header as the peer's, if the peer may say it; None of a header that names no
        client. Raises HostFull."""

    call_soon: Callable[[Callable[[], None]], object]
    time_slices: TimeSlices
