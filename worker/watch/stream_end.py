"""The end of the stream as its reader sees it: how far behind that it has applied, and which entries a reset covers."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import redis.asyncio

from registry.events.entry import FIRST, EventId
from worker.watch.boot_clock import boot_time

COUNT = 64  # of a read: an entry may have 64 KB, and what one read brings is applied without a pause


class StreamEnd:
    """Where the stream of this key ended whenever that was seen, by reads of `COUNT` entries.

    No clock of the store is asked: ids of entries are compared with one another alone."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._applied_at = boot_time()
        self._ends: deque[tuple[EventId, float]] = deque()  # those that are not applied yet
        self._last = FIRST
        self._reset_up_to: dict[str, EventId] = {}

    async def see(self, store: redis.asyncio.Redis, ids: Sequence[str], within_s: float) -> None:
        """Note where the stream ends: with the last of these ids, which a read brought, unless there may be more."""
        last = EventId.parse(ids[-1])
        if len(ids) == COUNT:
            if last <= self._last:
                return
            async with asyncio.timeout(within_s):
                newest: Any = await store.xrevrange(self._key, count=1)
            last = EventId.parse(newest[0][0]) if newest else last
        if self._ends and self._ends[-1][0] == last:
            self._ends.pop()
        self._ends.append((last, boot_time()))
        self._last = max(self._last, last)

    def applied(self, position: EventId) -> None:
        """Note that all entries up to this one have been applied."""
        while self._ends and self._ends[0][0] <= position:
            self._applied_at = self._ends.popleft()[1]

    def behind_s(self) -> float:
        """Return for how many seconds entries that were seen have waited to be applied, at most; 0 while none do."""
        return boot_time() - self._applied_at if self._ends else 0.0

    def covers(self, cause: str, entry: EventId) -> bool:
        """Return whether a reset of this cause began when the stream had this entry already: it dropped what the entry
        made untrue."""
        return entry <= self._reset_up_to.get(cause, FIRST)

    def was_reset(self, cause: str) -> None:
        """Note that a reset has succeeded which began after the end was seen last."""
        self._reset_up_to[cause] = self._last

    def forget(self) -> None:
        """Forget the ends: the next entries may be of another store, or of a stream with lower ids."""
        self._ends.clear()
        self._reset_up_to.clear()
        self._last = FIRST
