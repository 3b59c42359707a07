"""What a handler sees of the connection a request came over."""

from typing import Final, Protocol

__all__ = ["NONE_REGISTERED", "Frames", "Peer"]

Frames = bytes | tuple[bytes, ...]
"""Whole frames, in one piece or cut anywhere (a head packed around a cached body, say)."""

NONE_REGISTERED: Final[frozenset[str]] = frozenset()
"""Of most connections: Python makes a new empty set of 216 bytes each time."""


class Peer(Protocol):
    """The remote end of one accepted connection."""

    @property
    def id(self) -> str:
        """Unique among the connections this worker ever had; a restarted worker has another worker id."""

    @property
    def address(self) -> str:
        """`ip:port` of the remote end, from the PROXY header if a balancer sent one."""

    @property
    def leaving(self) -> bool:
        """Whether this client is to be told to go elsewhere (GO_AWAY), if it understands that.

        Not so while a worker that ends still accepts: who was sent away must not be sent away again where he
        comes in next, for he tries only twice."""

    registered: frozenset[str]
    """Keys of the members that registered over this connection; kept by the dispatch."""

    def frame(self) -> bytes:
        """The frame of the request that is being handed over, as it came."""

    def send(self, frame: Frames) -> None:
        """Write an answer, once for each request; what is sent within one turn of the loop leaves in one write.

        Does nothing once the connection is closed."""

    def close(self, reason: str) -> None:
        """Close after what was sent so far is flushed; `reason` goes to the log."""

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
