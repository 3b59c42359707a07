"""The messages of the stream as they come: what a follower calls, and the backlog that it fills."""

import asyncio
from collections.abc import Sequence
from typing import Final

from api.watchers.backlog import MOST_BYTES, Backlog
from api.watchers.crowd import Crowd
from api.watchers.history import History, Rows
from api.watchers.messages import TIMES_FIELDS, Message, messages_of, reset
from registry.drivers import AsyncDriver
from registry.events.entry import Event, EventId, preceding
from registry.keys import Keys
from registry.plans import Plan, call
from worker.watch.follower import Follower, ResetCause

__all__ = ["Feed"]

PAGE: Final = 500
PAGES: Final = 10
"""Of entries before the first that is followed: when a process ends, its watchers come to another one, from there, and
what the backlog has is read and encoded once for all of them."""


class Feed:
    """A listener of a follower, which has each message sent to the crowd."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._follower: Follower | None = None
        self._cause: ResetCause | None = None
        self.backlog: Backlog | None = None
        """None while the end of the stream is not known."""
        self.begun = asyncio.Event()

    def listen_to(self, follower: Follower) -> None:
        """Note by which follower this is called."""
        self._follower = follower

    async def apply(self, group: Sequence[Event]) -> None:
        """Called with the entries of one script."""
        backlog = self.backlog or self._begin(preceding(group[0].id))
        self._announce(backlog, backlog.position)
        for message in messages_of(group, backlog.position):
            self._append(backlog, message)
        if (room := self._crowd.room()) is not None:
            await room

    def emptied(self) -> None:
        """Called where the store has neither tables nor a stream: the next stream begins with an entry that says so."""

    async def reset(self, cause: ResetCause) -> None:
        """Called where entries are missing; the follower's position changes right behind this call."""
        self._cause = cause
        asyncio.get_running_loop().call_soon(self._at_position)

    async def read_before(self, driver: AsyncDriver, keys: Keys) -> None:
        """Fill the backlog with what was recorded before it began. Raises StoreUnavailable and RedisError."""
        backlog = self.backlog
        if backlog is None:
            return
        end = backlog.position
        oldest = await driver.run(_oldest(keys, end))
        if oldest is None:
            return
        history, messages, is_last = History(keys, oldest), [], False
        befores = [history.position]
        while not is_last and history.position < end:
            more, is_last = await driver.run(history.next_messages())
            messages += more
        messages = [message for message in messages if message.position <= end]
        befores += [message.position for message in messages]
        if befores[-1] == end:  # else it goes another way than what is followed
            for message, before in zip(reversed(messages), reversed(befores[:-1]), strict=True):
                if not backlog.prepend(message, before):
                    return

    def _at_position(self) -> None:
        position = None if self._follower is None else self._follower.position
        if position is not None:
            self._announce(self.backlog or self._begin(position), position)

    def _begin(self, position: EventId) -> Backlog:
        self.backlog = Backlog(position)
        self._cause = None
        self._crowd.begin(position)
        self.begun.set()
        return self.backlog

    def _announce(self, backlog: Backlog, position: EventId) -> None:
        cause, self._cause = self._cause, None
        if cause is not None and cause != "start":
            self._append(backlog, reset(position, cause))

    def _append(self, backlog: Backlog, message: Message) -> None:
        backlog.append(message)
        self._crowd.add(message, backlog.end)


def _oldest(keys: Keys, end: EventId) -> Plan[EventId | None]:
    """Return the id of the first of the entries up to an id that may fit into a backlog, None without any."""
    oldest, size = None, 0
    for _ in range(PAGES):
        rows: Rows = yield call("XREVRANGE", keys.events, str(end), "-", "COUNT", PAGE)
        if not rows:
            break
        oldest = EventId.parse(rows[-1][0])
        size += sum(len(text) for _, fields in rows for text in fields.values())
        if size * TIMES_FIELDS > MOST_BYTES:
            break
        end = preceding(oldest)
    return oldest
