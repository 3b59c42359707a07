"""The memory for long replies that peers have not taken yet, bounded for all connections of a worker together.

A reply is held once, however many peers it is for; what a transport has of it is one peer's, and counts while it is
more than a transport should have. When all that are held take too much, the peer that has kept one for the longest time
is cut off: one that reads has it a moment, one that does not keeps it until then.
"""

from collections.abc import Iterable
from typing import Final, Protocol

__all__ = ["LONG", "ReplyHolder", "ReplyMemory"]

LONG: Final = 64 << 10
"""Bytes of a reply, or a part of it, from which on it counts. Shorter ones are bounded for each connection."""


class ReplyHolder(Protocol):
    """Who keeps replies: `worker.transport.connection.Connection`."""

    def abort(self, reason: str) -> None:
        """End at once."""


class ReplyMemory:
    """Within `limit` bytes; a single holder may have more."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[ReplyHolder, list[bytes]] = {}  # the one that has kept one longest is the first
        self._holders: dict[int, int] = {}  # of each reply, by its identity
        self._unwritten: dict[ReplyHolder, int] = {}  # bytes of each one's transport, where they are too many
        self.taken = 0
        """Bytes of all that are held, each counted once."""
        self.bytes_written = 0
        """Bytes of replies that transports were ever given."""

    def hold(self, holder: ReplyHolder, replies: Iterable[bytes]) -> None:
        """Count these until `release`; others may be cut off for them."""
        held = self._held.setdefault(holder, [])
        for reply in replies:
            held.append(reply)
            holders = self._holders.get(id(reply), 0)
            self._holders[id(reply)] = holders + 1
            if not holders:
                self.taken += len(reply)
        self._make_room(holder)

    def unwritten(self, holder: ReplyHolder, size: int) -> None:
        """Count so many bytes of a transport; others may be cut off for them."""
        self.taken += size - self._unwritten.pop(holder, 0)
        if size:
            self._unwritten[holder] = size
            self._held.setdefault(holder, [])
            self._make_room(holder)
        elif not self._held.get(holder, True):
            del self._held[holder]

    def _make_room(self, holder: ReplyHolder) -> None:
        while self.taken > self._limit:
            longest = next((other for other in self._held if other is not holder), None)
            if longest is None:
                return
            self.release_all(longest)
            longest.abort("its replies were left unread while others needed the memory")

    def release(self, holder: ReplyHolder, reply: bytes) -> None:
        """Note that a peer has taken a reply, if it counted."""
        held = self._held.get(holder)
        if held is None:
            return
        for at, one in enumerate(held):
            if one is reply:
                del held[at]
                self._forget(reply)
                break
        if not held and holder not in self._unwritten:
            del self._held[holder]

    def release_all(self, holder: ReplyHolder) -> None:
        """Note that a peer will take no more."""
        self.taken -= self._unwritten.pop(holder, 0)
        for reply in self._held.pop(holder, ()):
            self._forget(reply)

    def _forget(self, reply: bytes) -> None:
        holders = self._holders[id(reply)] - 1
        if holders:
            self._holders[id(reply)] = holders
        else:
            del self._holders[id(reply)]
            self.taken -= len(reply)
