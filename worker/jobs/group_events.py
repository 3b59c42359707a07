"""Reads the stream of members that enter and leave (`events:groups` in docs/keys.md) from its end on, over reconnects.

It has an entry for each script that changes members, and none for topics: a reader costs nothing while only these
change. What comes again, as after the store has gone back, is for `apply` to recognise.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import redis.asyncio
from redis.exceptions import RedisError

from registry.errors import StoreUnavailable
from registry.events.entry import FIRST, Event, EventId
from registry.keys import Keys
from registry.store.connect import BLOCK_MS
from registry.store.pipeline import read_stream
from rocketmq_remoting.typed import decoded
from worker.logs.rate_limited_log import RateLimitedLog
from worker.watch.boot_clock import boot_time
from worker.watch.follower import STALLED_S
from worker.watch.stream_connection import StreamConnection

COUNT: Final = 64
"""Entries of one read."""

log = RateLimitedLog(logging.getLogger(__name__))
Apply = Callable[[Sequence[Event]], Awaitable[None]]
"""Is called with the entries `broker_registered` and `broker_removed` of one script, which have `kind cause broker id
addr addrs ha`. One that raises StoreUnavailable gets them again after the reconnect."""


class GroupEvents(StreamConnection):
    """A reader of a namespace's stream; `connect` makes its connection (registry.store.connect.connect_follower).

    Made on the loop it will run on."""

    stream = "the stream events:groups"

    def __init__(self, connect: Callable[[], redis.asyncio.Redis], keys: Keys, apply: Apply) -> None:
        super().__init__(connect)
        self._key = keys.group_events
        self._apply = apply
        self._position: EventId | None = None

    def _broken(self) -> None:
        """Nothing is read in part."""

    async def _catch_up(self, store: redis.asyncio.Redis) -> None:
        self._position = await self._verified(store)
        self._read_at = boot_time()

    async def _read(self, store: redis.asyncio.Redis) -> None:
        entries = await read_stream(store, self._key, str(self._position), COUNT, BLOCK_MS, STALLED_S)
        for entry_id, fields in entries:
            await self._feed(entry_id, fields)
            self._position = EventId.parse(entry_id)
        if not entries:
            self._position = await self._verified(store)
        self._read_at = boot_time()

    async def _verified(self, store: redis.asyncio.Redis) -> EventId:
        """Return the position; at first that is the end, and of a stream that ends before it, which is another one or
        has gone back, its beginning."""
        async with asyncio.timeout(STALLED_S):
            newest: Any = await store.xrevrange(self._key, count=1)
        last = EventId.parse(newest[0][0]) if newest else FIRST
        if self._position is None:
            return last
        return FIRST if FIRST < last < self._position else self._position

    async def _feed(self, entry_id: str, fields: dict[str, str]) -> None:
        try:
            events = decoded(fields["events"].encode(), list[dict[str, str]])
            await self._apply([Event.of(event["event"], event) for event in events])
        except (StoreUnavailable, RedisError, OSError):
            raise
        except Exception as error:
            log.warning(
                "entry %s of %s cannot be read: %r; 905 is not pushed for it, find out what wrote it",
                entry_id,
                self.stream,
                error,
            )
