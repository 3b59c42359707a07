"""Requests that wait until an entry of the event stream has been applied."""

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable

from registry.events.entry import EventId
from worker.rate_limited_log import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))


class _Waiter:
    """Calls `done` once, from the loop itself, so that its errors do not reach the follower."""

    __slots__ = ("_done", "_over", "_timer")

    def __init__(self, done: Callable[[bool], object], within_s: float) -> None:
        self._done = done
        self._timer = asyncio.get_running_loop().call_later(within_s, self._too_late)
        self._over = False

    def reach(self) -> None:
        """Note that the entry has been applied."""
        self._timer.cancel()
        if not self._over:
            self._over = True
            asyncio.get_running_loop().call_soon(self._done, True)

    def _too_late(self) -> None:
        self._over = True
        log.warning(
            "the event stream is behind: an entry was not seen in time; check the load of the store and of this worker"
        )
        self._done(False)


class Waiters:
    """Those of one follower."""

    def __init__(self) -> None:
        self._waiting: list[tuple[EventId, int, _Waiter]] = []
        self._numbers = itertools.count()

    def add(self, entry: EventId, done: Callable[[bool], object], within_s: float) -> None:
        """Call `done` with True when this entry is reached, with False when that takes longer."""
        heapq.heappush(self._waiting, (entry, next(self._numbers), _Waiter(done, within_s)))

    def reach(self, position: EventId) -> None:
        """Note that the entry there has been applied, and all before it."""
        while self._waiting and self._waiting[0][0] <= position:
            heapq.heappop(self._waiting)[2].reach()
