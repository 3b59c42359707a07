"""A priority queue of those that wait: who is next is found without a look at each of them."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Final, Generic, TypeVar

__all__ = ["Priority", "PriorityQueue"]

T = TypeVar("T")
GONE_MOST: Final = 64
"""Entries of those that wait no more, beside as many as there are of the others, before all of them are dropped."""

Priority = tuple[bool, int]


class PriorityQueue(Generic[T]):
    """The one with the least `priority` is next, the first of equals.

    Priorities change while one waits. One that has grown counts as it is now; one that has shrunk does so once it was
    looked at, which comes to each in as many calls of `next` as there are entries."""

    def __init__(self, priority: Callable[[T], Priority]) -> None:
        self._priority = priority
        self._entries: list[tuple[Priority, int, T]] = []
        self._numbers: dict[T, int] = {}
        self._count = count()
        self._looked_at = 0

    def add(self, one: T) -> None:
        """Let one wait that does not."""
        number = self._numbers[one] = next(self._count)
        heappush(self._entries, (self._priority(one), number, one))
        if len(self._entries) > 2 * len(self._numbers) + GONE_MOST:
            self._entries[:] = filter(self._waits, self._entries)
            heapify(self._entries)

    def discard(self, one: T) -> None:
        """Let one wait no more."""
        self._numbers.pop(one, None)
        if not self._numbers:
            self._entries.clear()

    def next(self) -> T | None:
        """Return the one that is next, None if none waits."""
        entries = self._entries
        self._look_at_another()
        while entries:
            priority, number, one = entries[0]
            if not self._waits(entries[0]):
                heappop(entries)
            elif priority < (now := self._priority(one)):
                heapreplace(entries, (now, number, one))
            else:
                return one
        return None

    def _look_at_another(self) -> None:
        """Enter one again whose priority has shrunk."""
        if self._entries:
            self._looked_at = (self._looked_at + 1) % len(self._entries)
            entry = self._entries[self._looked_at]
            if self._waits(entry) and self._priority(entry[2]) < entry[0]:
                self.add(entry[2])

    def _waits(self, entry: tuple[Priority, int, T]) -> bool:
        return self._numbers.get(entry[2]) == entry[1]
