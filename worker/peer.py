"""The connection of a request, as a handler sees it."""

from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Final, Protocol

from access.certificates import CertificateNames
from access.standing import Standing

__all__ = ["NONE_REGISTERED", "Frames", "Peer", "Via", "host_of"]

Frames = bytes | tuple[bytes, ...]
"""Whole frames, joined or cut anywhere (a head packed around a cached body, say)."""

NONE_REGISTERED: Final[AbstractSet[str]] = frozenset()
"""What most connections have; a new empty set has 216 bytes."""


class Via(Enum):
    """How a connection came here, as far as rights by its address depend on it."""

    DIRECT = "no proxy"
    FORWARDED = "a PROXY header"
    """Of whatever peer: `host` is what a trusted proxy says, or the peer's own."""
    UNNAMED = "a trusted proxy that names no client"


def host_of(address: str) -> str:
    """Return an `ip:port` without the port."""
    return address.rpartition(":")[0]


class Tls(Protocol):
    """A TLS session, as far as rights depend on it."""

    @property
    def certificate(self) -> CertificateNames | None:
        """The names of the certificate that the peer has shown, if it was verified. Raises UnreadableCertificate."""


class Peer(Protocol):
    """The remote end of one accepted connection."""

    @property
    def id(self) -> str:
        """Unique among the connections this worker ever had; a restarted worker has another worker id."""

    @property
    def address(self) -> str:
        """`ip:port` of the remote end, from the PROXY header if a peer of `proxyTrustedCidrs` sent one."""

    @property
    def host(self) -> str:
        """Where it comes from, for limits and rights: that of `address`."""

    @property
    def via(self) -> Via:
        """How it came here."""

    @property
    def tls(self) -> Tls | None:
        """Its TLS session, None of a plain connection."""

    rights: int
    """The classes (`access.classes`) of what it may ask without a signature; kept by `worker.guard`."""

    standing: Standing
    """Why; kept by `worker.guard`."""

    @property
    def go_away(self) -> bool:
        """Whether to answer with GO_AWAY, if the client understands that.

        False while a worker that ends still accepts: a client tries only twice, and must not get GO_AWAY both times."""

    registered: AbstractSet[str]
    """Keys of the members that registered over this connection; kept by `worker.watch.closed_connections`."""

    def frame(self) -> bytes:
        """The frame of the request that is being handed over, as it came."""

    def send(self, frame: Frames) -> None:
        """Write a reply, once for each request; what is sent within one iteration of the loop leaves in one write.

        Does nothing once the connection is closed."""

    def await_long(self) -> None:
        """Note that the reply to the request that is being handed over may be long; it has one.

        No further request is handed over before it is sent, and the peer has read most of it."""

    def close(self, reason: str) -> None:
        """Close after what was sent so far is flushed; `reason` goes to the log."""

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
