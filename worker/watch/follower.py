"""Follows the stream of events from the last entry seen, over reconnects, and notices when that cannot be done.

Listeners get whole groups (the entries of one script) in order, and `reset` when entries were missed or never
happened. A listener that raises StoreUnavailable gets the same group again after the reconnect. An entry that cannot be
read, that has no number, or that a listener cannot apply, is left out as if it had been missed. One reset is enough for
all such entries that the stream has when it begins.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, Protocol

import redis.asyncio
from redis.exceptions import RedisError

from registry.errors import StoreUnavailable
from registry.events.continuity import Break, break_before
from registry.events.entry import FIRST, Event, EventId
from registry.keys import Keys
from registry.store.connect import BLOCK_MS
from registry.store.pipeline import read_stream
from worker.logs.rate_limited_log import RateLimitedLog
from worker.watch.boot_clock import boot_time
from worker.watch.stream_connection import StreamConnection
from worker.watch.stream_end import COUNT, StreamEnd
from worker.watch.waiters import Waiters

STALLED_S = 4.0  # a read waits BLOCK_MS, and a slow store has 3 s more; after that its connection is dead
REACHED_WITHIN_S = STALLED_S + 0.5  # by then a dead connection has been found out

log = RateLimitedLog(logging.getLogger(__name__))

ResetCause = Break | Literal["start", "unreadable"]
BREAKS: Final[Mapping[ResetCause, str]] = {
    "hole": "numbers are missing, as of entries that were trimmed unread",
    "rollback": "numbers come a second time, as from a store that lost its newest writes, or another program",
    "incarnation": "it began again, as after the store was emptied",
}
Entry = tuple[str, dict[str, str]]


class Listener(Protocol):
    """What is called with the entries."""

    async def apply(self, group: Sequence[Event]) -> None:
        """Apply all entries of one script."""

    def emptied(self) -> None:
        """Note that the store has neither the tables nor the stream any more, or had not when its stream began."""

    async def reset(self, cause: ResetCause) -> None:
        """Note that entries were missed, or did not happen."""


class Follower(StreamConnection):
    """One reader of one namespace's stream; `connect` makes its connection (registry.store.connect.connect_follower).

    Made on the loop it will run on."""

    def __init__(
        self,
        connect: Callable[[], redis.asyncio.Redis],
        keys: Keys,
        listener: Listener,
    ) -> None:
        super().__init__(connect)
        self._keys = keys
        self._listener = listener
        self._position: EventId | None = None
        self._incarnation: str | None = None
        self._sequence = 0
        self._applied: tuple[str | None, int] = (None, 0)  # incarnation and sequence at our position
        self._at_position: Mapping[str, str] | None = None  # the entry there
        self._group: list[Event] = []
        self._end = StreamEnd(keys.events)
        self._waiters = Waiters()

    @property
    def position(self) -> EventId | None:
        """The last entry that has been applied; None while the stream's end is not known, FIRST before its first."""
        return self._position

    def passed(self, event_id: str) -> bool:
        """Whether this entry has been applied."""
        return self._position is not None and self._position >= EventId.parse(event_id)

    def behind_s(self) -> float:
        """Return by how many seconds what was applied is behind the stream's end as seen; 0 while none is read."""
        return self._end.behind_s()

    def when_reached(
        self, event_id: str, done: Callable[[bool], object], *, within_s: float = REACHED_WITHIN_S
    ) -> None:
        """Call `done` with True when this entry has been applied, with False when that takes too long."""
        if not event_id or self.passed(event_id):
            done(True)
            return
        self._waiters.add(EventId.parse(event_id), done, within_s)

    def _broken(self) -> None:
        self._group.clear()
        self._end.forget()
        self._incarnation, self._sequence = self._applied

    async def _catch_up(self, store: redis.asyncio.Redis) -> None:
        """Apply what is in the stream already; one read at least, for only that shows that reads bring changes."""
        last = await self._verify(store)
        while await self._take(store) and self._seen() < last:
            pass

    def _seen(self) -> EventId:
        return self._group[-1].id if self._group else self._position or FIRST

    async def _read(self, store: redis.asyncio.Redis) -> None:
        """Apply what comes next."""
        count = await self._take(store, BLOCK_MS)
        if not count and await self._verify(store) <= self._seen():
            self._read_at = boot_time()  # nothing new, and reads work: else this would not be asked

    async def _take(self, store: redis.asyncio.Redis, block_ms: int | None = None) -> int:
        """Read and apply the next entries, waiting for them if `block_ms` is given; return how many came.

        The stream was read when nothing came, or what came has been applied: no entry that comes again and again since
        it cannot be counts."""
        at = str(self._seen())
        entries = await read_stream(store, self._keys.events, at, COUNT, block_ms, STALLED_S)
        if not entries:
            self._read_at = boot_time()
        await self._end.see(store, [event_id for event_id, _ in entries] or [at], STALLED_S)
        for event_id, fields in entries:
            await self._feed(event_id, fields)
            if not self._group:
                self._read_at = boot_time()
        self._end.applied(self._position or FIRST)
        return len(entries)

    async def _feed(self, event_id: str, fields: dict[str, str]) -> None:
        event = Event.of(event_id, fields)
        if not event.is_numbered:
            _report_numberless(event_id)
            await self._leave_out(event)
            return
        is_last = event.is_last_of_group
        try:
            if (cause := break_before(event, self._incarnation, self._sequence)) is not None:
                await self._reset(cause, event.id)
            self._incarnation, self._sequence = event.incarnation, event.sequence
            self._group.append(event)
            if is_last:
                await self._listener.apply(self._group)
        except (StoreUnavailable, RedisError, OSError):
            raise
        except Exception as error:
            log.warning(
                "entry %s of the event stream cannot be read: %r; what was cached is dropped, find out what wrote it",
                event_id,
                error,
            )
            await self._leave_out(event)
            return
        if is_last:
            self._group = []
            self._arrived(event.id, fields)

    async def _leave_out(self, event: Event) -> None:
        await self._reset("unreadable", event.id)
        self._arrived(event.id, event.fields)

    async def _reset(self, cause: ResetCause, entry: EventId | None = None) -> None:
        """Have the listener reset, for this entry of the stream or for what is not there, unless it did that when the
        entry was there."""
        if cause not in ("start", "unreadable"):
            log.warning(
                "the event stream has a break: %s, at entry %s; caches are read again, nothing is to be done",
                BREAKS[cause],
                entry or self._position,
            )
        self._group.clear()
        if entry is None or not self._end.covers(cause, entry):
            await self._listener.reset(cause)
            self._end.was_reset(cause)

    def _arrived(self, position: EventId, fields: Mapping[str, str] | None) -> None:
        """Note the entry that was applied last; None before the first of a stream."""
        self._position = position
        self._at_position = fields
        self._applied = (self._incarnation, self._sequence)
        self._waiters.reach(position)

    async def _verify(self, store: redis.asyncio.Redis) -> EventId:
        """Check that the stream still has the entry at our position where it was; else begin again (events.md 9).

        Return the last entry that the stream has."""
        here = str(self._position or FIRST)
        events = self._keys.events
        pipe = store.pipeline(transaction=False)
        pipe.xrevrange(events, count=1)
        pipe.xrange(events, here, here)
        pipe.xrange(events, count=1)
        pipe.hget(self._keys.events_meta, "inc")
        async with asyncio.timeout(STALLED_S):
            last, at_position, first, begun = await pipe.execute()
        await self._judge(last, at_position, first, begun)
        return EventId.parse(last[0][0]) if last else FIRST

    async def _judge(
        self, last: list[Entry], at_position: list[Entry], first: list[Entry], begun: str | None
    ) -> None:
        if self._position is None:
            await self._reset("start")
            if not begun:
                self._listener.emptied()
            self._begin_at(last)
        elif self._position == FIRST or self._is_last_applied(at_position):
            return
        elif not last:
            if not begun:
                log.warning("the store has come back empty; brokers register again by themselves within 30 s")
                self._listener.emptied()
                self._begin_at(last)
        elif EventId.parse(first[0][0]) > self._position:
            # New, or trimmed: then the sequence of what is read next tells whether anything was missed.
            self._check_new(first)
        elif last[0][1].get("inc") != self._incarnation:
            self._check_new(first)
            self._position = FIRST  # read from its start
            self._end.forget()
        else:
            await self._reset("rollback")
            self._begin_at(last)

    def _check_new(self, first: list[Entry]) -> None:
        """Report a new store at once, so that no request is answered from it before its stream has been read."""
        if first[0][1].get("cause") == "empty_store":
            self._listener.emptied()

    def _is_last_applied(self, entries: list[Entry]) -> bool:
        return bool(entries) and entries[0][1] == self._at_position

    def _begin_at(self, last: list[Entry]) -> None:
        self._end.forget()
        if last:
            event_id, fields = last[0]
            sequence = fields.get("seq", "")
            known = sequence.isdecimal()  # else the next entry tells
            self._incarnation = fields.get("inc") if known else None
            self._sequence = int(sequence) if known else 0
            self._arrived(EventId.parse(event_id), fields)
        else:
            self._incarnation, self._sequence = None, 0
            self._arrived(FIRST, None)


def _report_numberless(event_id: str) -> None:
    log.warning(
        "entry %s of the event stream has no number (seq), so another program wrote it; it is left out and what was "
        "cached is dropped, see which users may write to the stream (redis-cli acl list): only the server needs to",
        event_id,
    )
