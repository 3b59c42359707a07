"""A priority queue of items that wait: the next one is found without a look at each of them."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Final, Generic, TypeVar

__all__ = ["Priority", "PriorityQueue"]

T = TypeVar("T")
GONE_MOST: Final = 64
"""Entries of items that wait no more, beside as many as there are of the others, before all of them are dropped."""

Priority = tuple[bool, int]


class PriorityQueue(Generic[T]):
    """The item with the least `priority` is next, the first of equals.

    Priorities change while an item waits. One that has grown counts as it is now; one that has shrunk, after a look at
    its item: each call of `next` looks at another one."""

    def __init__(self, priority: Callable[[T], Priority]) -> None:
        self._priority = priority
        self._entries: list[tuple[Priority, int, T]] = []
        self._numbers: dict[T, int] = {}
        self._count = count()
        self._looked_at = 0

    def add(self, item: T) -> None:
        """Let an item wait that does not."""
        number = self._numbers[item] = next(self._count)
        heappush(self._entries, (self._priority(item), number, item))
        if len(self._entries) > 2 * len(self._numbers) + GONE_MOST:
            self._entries[:] = filter(self._waits, self._entries)
            heapify(self._entries)

    def discard(self, item: T) -> None:
        """Let an item wait no more."""
        self._numbers.pop(item, None)
        if not self._numbers:
            self._entries.clear()

    def next(self) -> T | None:
        """Return the next item, None if none waits."""
        entries = self._entries
        self._look_at_another()
        while entries:
            priority, number, item = entries[0]
            if not self._waits(entries[0]):
                heappop(entries)
            elif priority < (now := self._priority(item)):
                heapreplace(entries, (now, number, item))
            else:
                return item
        return None

    def _look_at_another(self) -> None:
        """Add an item again if its priority has shrunk."""
        if self._entries:
            self._looked_at = (self._looked_at + 1) % len(self._entries)
            entry = self._entries[self._looked_at]
            if self._waits(entry) and self._priority(entry[2]) < entry[0]:
                self.add(entry[2])

    def _waits(self, entry: tuple[Priority, int, T]) -> bool:
        return self._numbers.get(entry[2]) == entry[1]
