"""Who is next of many that wait, found without a look at each of them."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Final, Generic, TypeVar

__all__ = ["Turns"]

T = TypeVar("T")
GONE_MOST: Final = 64
"""Entries of those that wait no more, beside as many as there are of the others, before all of them are dropped."""

Turn = tuple[bool, int]


class Turns(Generic[T]):
    """The one with the least `turn` is next, the first of equals. A turn that has grown since counts as it is now."""

    def __init__(self, turn: Callable[[T], Turn]) -> None:
        self._turn = turn
        self._entries: list[tuple[Turn, int, T]] = []
        self._numbers: dict[T, int] = {}
        self._count = count()

    def add(self, one: T) -> None:
        """Let one wait that does not."""
        number = self._numbers[one] = next(self._count)
        heappush(self._entries, (self._turn(one), number, one))
        if len(self._entries) > 2 * len(self._numbers) + GONE_MOST:
            self._entries[:] = filter(self._waits, self._entries)
            heapify(self._entries)

    def discard(self, one: T) -> None:
        """Let one wait no more."""
        self._numbers.pop(one, None)
        if not self._numbers:
            self._entries.clear()

    def next(self) -> T | None:
        """Return the one whose turn it is, None if none waits."""
        entries = self._entries
        while entries:
            turn, number, one = entries[0]
            if not self._waits(entries[0]):
                heappop(entries)
            elif turn < (now := self._turn(one)):
                heapreplace(entries, (now, number, one))
            else:
                return one
        return None

    def _waits(self, entry: tuple[Turn, int, T]) -> bool:
        return self._numbers.get(entry[2]) == entry[1]
