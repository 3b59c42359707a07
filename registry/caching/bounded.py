"""The map that every cache keeps its entries in: within a number of bytes, the least recently used evicted first."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

ENTRY_FRACTION: Final = 4
"""An entry of more than this fraction of the limit is not kept: it would evict most others."""


class Bounded(Generic[K, V]):
    """Entries of at most `limit` bytes together; `cost` gives the bytes of one, always the same.

    `evicted` is called for each entry that makes way. The order of use is recorded once three quarters of the
    limit are taken (`crowded`): before, no entry is near its eviction, and a hit costs no more than a look into a dict.
    A hot path reads `entries` itself, and calls its `move_to_end` while the map is crowded."""

    __slots__ = ("_cost", "_evicted", "crowded", "entries", "limit", "size")

    def __init__(
        self, limit: int, cost: Callable[[K, V], int], evicted: Callable[[K, V], object] = lambda *_: None
    ) -> None:
        self.limit = limit
        self.size = 0
        self.crowded = False
        self.entries: OrderedDict[K, V] = OrderedDict()  # whose first entry is found at once, unlike a dict's
        self._cost = cost
        self._evicted = evicted

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, key: K) -> V | None:
        """Return the entry, which is then the last to be evicted, or None."""
        entry = self.entries.get(key)
        if entry is not None and self.crowded:
            self.entries.move_to_end(key)
        return entry

    def put(self, key: K, entry: V) -> bool:
        """Keep an entry in place of the last one of its key; return whether it is kept."""
        if key in self.entries:
            self.pop(key)
        cost = self._cost(key, entry)
        if cost * ENTRY_FRACTION > self.limit:
            return False
        self.entries[key] = entry
        self.size += cost
        while self.size > self.limit:
            self._evict()
        self.crowded = 4 * self.size > 3 * self.limit
        return True

    def pop(self, key: K) -> V | None:
        """Remove an entry and return it, or None."""
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.size -= self._cost(key, entry)
        return entry

    def clear(self) -> None:
        """Remove all entries."""
        self.entries.clear()
        self.size = 0
        self.crowded = False

    def _evict(self) -> None:
        key, entry = self.entries.popitem(last=False)
        self.size -= self._cost(key, entry)
        self._evicted(key, entry)
