"""Requests that wait until an entry of the event stream has been applied."""

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable

from registry.events.entry import EventId
from worker.logs.rate_limited_log import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))


class _Waiter:
    """Calls `done` once, from the loop itself, so that its errors do not reach the follower. It drops it then:
    with `done` goes the request, and while nothing is followed others come without end."""

    __slots__ = ("_done", "_timer", "_within_s")

    def __init__(self, done: Callable[[bool], object], within_s: float, too_late: Callable[[], None]) -> None:
        self._done: Callable[[bool], object] | None = done
        self._within_s = within_s
        self._timer = asyncio.get_running_loop().call_later(within_s, self._too_late, too_late)

    @property
    def is_over(self) -> bool:
        return self._done is None

    def reach(self) -> None:
        """Note that the entry has been applied."""
        self._timer.cancel()
        if self._done is not None:
            asyncio.get_running_loop().call_soon(self._done, True)
            self._done = None

    def _too_late(self, too_late: Callable[[], None]) -> None:
        log.warning(
            "the event stream is behind: the entry of a request was not read within %g s, and it is answered all the "
            "same; check the load of the store and of this worker",
            self._within_s,
        )
        done, self._done = self._done, None
        too_late()
        if done is not None:
            done(False)


class Waiters:
    """Those of one follower."""

    def __init__(self) -> None:
        self._waiting: list[tuple[EventId, int, _Waiter]] = []
        self._numbers = itertools.count()
        self._over = 0  # of those in the heap

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, entry: EventId, done: Callable[[bool], object], within_s: float) -> None:
        """Call `done` with True when this entry is reached, with False when that takes longer."""
        waiter = _Waiter(done, within_s, self._too_late)
        heapq.heappush(self._waiting, (entry, next(self._numbers), waiter))

    def reach(self, position: EventId) -> None:
        """Note that the entry there has been applied, and all before it."""
        while self._waiting and self._waiting[0][0] <= position:
            waiter = heapq.heappop(self._waiting)[2]
            self._over -= waiter.is_over
            waiter.reach()

    def _too_late(self) -> None:
        """Drop those that are over once they are half of all: a heap gives up only its first for little."""
        self._over += 1
        if 2 * self._over >= len(self._waiting):
            self._waiting = [one for one in self._waiting if not one[2].is_over]
            heapq.heapify(self._waiting)
            self._over = 0
