"""How many of the requests that may wait at once one peer may have, so that none keeps the others out.

A host may have as many under way as there is still room for: one alone has half at most, two have a third each, and
something is always left for the next. A connection may have a quarter of what its host may still have. A quarter of
all is for hosts that a broker has registered from. While few wait, which is nearly always, hosts are not counted, for
that costs time. A capacity below SHARED_FROM is too small to be shared: one peer may take all of it, as with Java.
"""

from typing import Final

from worker.overload.known_hosts import KnownHosts
from worker.peer import Peer

__all__ = ["CALM", "FEW", "SHARED_FROM", "Shares"]

CALM: Final = 256
"""Requests of all peers beyond which each peer's are counted, or one in CALM_PART of the capacity if that is less; so
many may be missing in the counts."""
CALM_PART: Final = 8
FEW: Final = 16
"""Requests of one peer that no share forbids, however little room there is, or one in FEW_PART of the capacity."""
FEW_PART: Final = 16
PART: Final = 4
SHARED_FROM: Final = 64


class Shares:
    """The waiting requests of one class by host; `capacity` may wait, below 1 it counts as 1.

    `calm` is how many may wait before `exceeded` has to be asked."""

    def __init__(self, known_hosts: KnownHosts, capacity: int) -> None:
        self.capacity = capacity = max(capacity, 1)
        self.calm = min(CALM, capacity // CALM_PART) if capacity >= SHARED_FROM else capacity
        self._few = min(FEW, capacity // FEW_PART)
        self._known_hosts = known_hosts
        self._hosts: dict[str, int] = {}
        self._connections: dict[str, int] = {}
        self.total = 0

    def exceeded(self, peer: Peer) -> str:
        """Return which share one request more of this peer would exceed, "" if none. Not to be asked below `calm`."""
        capacity = self.capacity
        if not self._known_hosts.knows(peer):
            capacity -= capacity // PART
            if self.total >= capacity:
                return "the three quarters for hosts without a broker"
        free = capacity - self.total
        of_host = self._hosts.get(peer.host, 0)
        if of_host >= max(free, self._few):
            return f"the share of host {peer.host}, which has {of_host}"
        of_connection = self._connections.get(peer.id, 0)
        if of_connection >= max((free - of_host) // PART, self._few):
            return f"the share of one connection, which has {of_connection}"
        return ""

    def take(self, peer: Peer) -> None:
        """Count a request; `give_back` must follow."""
        self.total += 1
        if self.total > self.calm:
            for counts, key in ((self._hosts, peer.host), (self._connections, peer.id)):
                counts[key] = counts.get(key, 0) + 1

    def give_back(self, peer: Peer) -> None:
        """Count a request as answered."""
        self.total -= 1
        if not self._hosts:
            return
        if self.total < self.calm:
            self._hosts.clear()
            self._connections.clear()
            return
        for counts, key in ((self._hosts, peer.host), (self._connections, peer.id)):
            left = counts.pop(key, 1) - 1
            if left:
                counts[key] = left
