"""Watchers that have read all: what comes is encoded once for each audience of theirs, and sent in passes.

A pass sends all that came since the one before: where changes come faster than they can be sent to all, each watcher
gets several at once."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from time import time
from typing import Final, NamedTuple

from api.counters import COUNTERS
from api.watchers.holders import Holders
from api.watchers.messages import Chosen, Message
from api.watchers.watcher import HEARTBEAT_TICKS, Audience, Block, Watcher
from registry.events.entry import FIRST, EventId

__all__ = ["Crowd"]

PENDING_BYTES: Final = 4 << 20
"""With so many, the stream is read on when they have been sent."""
SENT_AT_ONCE: Final = 100
"""Watchers of a pass before the loop does other things."""

log = logging.getLogger(__name__)

Sent = Callable[[Watcher, Block], None]


class _Members:
    """The watchers of an audience, and the messages that are to be sent to them."""

    def __init__(self) -> None:
        self.watchers: dict[Watcher, None] = {}
        self.messages: list[tuple[Message, Chosen]] = []


class _Due(NamedTuple):
    audience: Audience
    messages: list[tuple[Message, Chosen]]
    watchers: tuple[Watcher, ...]


class Crowd:
    """Made on the loop it will run on; `sent` is called for each watcher with what was written to it."""

    def __init__(self, sent: Sent) -> None:
        self._sent = sent
        self._members: dict[Audience, _Members] = {}
        self._joining: list[Watcher] = []
        self._changed = asyncio.Event()
        self._room: asyncio.Future[None] | None = None
        self._pending_bytes = 0
        self._ticks = 0
        self._whole: tuple[object, Block] | None = None
        """In a pass: the block of whole messages that was made last, and what it is of."""
        self._recorded: list[int] = []
        """When the messages were recorded that are to be sent (Unix ms)."""
        self._end = 0
        self._last = FIRST
        self.boundary = 0
        """The number of the first message that the crowd was not sent."""
        self.position = FIRST
        """Where the crowd is."""
        self.holders: Final = Holders()

    def begin(self, position: EventId) -> None:
        """Note where the first watchers begin: behind this position, with the message 0."""
        self._last = self.position = position

    def watch(self, watcher: Watcher) -> None:
        """Note a watcher, which joins later."""
        self.holders.watch(watcher.audience.wanted.topic)

    def join(self, watcher: Watcher) -> None:
        """Have a watcher whose next message is `boundary`, or one behind it, go on with the others.

        While these are to be sent others, it waits for that: it may have them, or nothing is prepared for it."""
        if watcher.number == self.boundary == self._end:
            self._members.setdefault(watcher.audience, _Members()).watchers[watcher] = None
        else:
            self._joining.append(watcher)
            self._changed.set()

    def leave(self, watcher: Watcher) -> None:
        """Have a watcher go on by itself."""
        members = self._members.get(watcher.audience)
        if members is not None and watcher in members.watchers:
            del members.watchers[watcher]
            watcher.number, watcher.position = self.boundary, self.position
            if not members.watchers:
                del self._members[watcher.audience]

    def forget(self, watcher: Watcher) -> None:
        """Forget a watcher whose connection is over."""
        self.leave(watcher)
        self.holders.unwatch(watcher.audience.wanted.topic)

    def add(self, message: Message, number: int) -> None:
        """Have a message sent to all that want it; `number` is that of the next one."""
        if message.cause is not None:
            self.holders.forget()  # what is missing may have been rows of a watched topic
        around = self.holders.pass_by(message.entries)
        for audience, members in self._members.items():
            topic = audience.wanted.topic
            chosen = message.wanted(audience.wanted, None if topic is None else around.get(topic))
            if chosen is not None:
                members.messages.append((message, chosen))
        self._pending_bytes += message.bytes
        self._end, self._last = number, message.position
        if message.cause is None:
            self._recorded.append(message.position.ms)
        self._changed.set()

    def room(self) -> "asyncio.Future[None] | None":
        """Return what to wait for before others are added; None for nothing."""
        if self._pending_bytes <= PENDING_BYTES:
            return None
        if self._room is None:
            self._room = asyncio.get_running_loop().create_future()
        return self._room

    async def pass_or(self, until: float, go_on: Callable[[Watcher], None]) -> None:
        """Wait for messages or for this time of the loop; send what came; `go_on` is called with those that join."""
        try:
            async with asyncio.timeout_at(until):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()
        due, recorded = self._take()
        joining, self._joining = self._joining, []
        for watcher in joining:
            try:
                go_on(watcher)
            except Exception:  # what is due to the others is in this pass alone
                _cut_off((watcher,))
        sent = sum([await self._send_due(one) for one in due])
        self._whole = None
        if sent:
            COUNTERS.watch_delays(time() - ms / 1000 for ms in recorded)

    async def _send_due(self, due: _Due) -> int:
        """Send an audience what came; return to how many watchers."""
        try:
            sent = await self._send(self._block(due), due.watchers)
            await asyncio.sleep(0)
        except Exception:  # those that were not sent it would miss it
            _cut_off(due.watchers)
            return 0
        resets = sum(message.cause is not None for message, _ in due.messages)
        COUNTERS.watch_events("sent", (len(due.messages) - resets) * sent)
        COUNTERS.watch_events("reset", resets * sent)
        return sent

    def _block(self, due: _Due) -> Block:
        """Return what an audience is sent: the same for all that want the whole of the same messages."""
        audience = due.audience
        if any(len(chosen) < len(message.entries) for message, chosen in due.messages):
            return audience.block(due.messages, self.position)
        same = (audience.is_long_poll, audience.chunked, tuple(id(message) for message, _ in due.messages))
        if self._whole is None or self._whole[0] != same:
            self._whole = same, audience.block(due.messages, self.position)
        return self._whole[1]

    async def tick(self) -> None:
        """Send a part of the watchers a heartbeat."""
        self._ticks += 1
        turn = self._ticks % HEARTBEAT_TICKS
        for audience, members in [*self._members.items()]:
            block = Block(audience.framed(audience.form.heartbeat(self.position)))
            if block.data:
                await self._send(block, [watcher for watcher in members.watchers if watcher.turn == turn])

    def _take(self) -> tuple[list[_Due], list[int]]:
        """Return what is to be sent; what comes from now on is of the next pass."""
        due = []
        for audience, members in self._members.items():
            if members.messages:
                due.append(_Due(audience, members.messages, tuple(members.watchers)))
                members.messages = []
        self._pending_bytes = 0
        if self._room is not None:
            self._room.set_result(None)
            self._room = None
        self.boundary, self.position = self._end, self._last
        recorded, self._recorded = self._recorded, []
        return due, recorded

    async def _send(self, block: Block, watchers: Iterable[Watcher]) -> int:
        """Send a block to watchers that are here still; return to how many."""
        sent = 0
        for watcher in watchers:
            members = self._members.get(watcher.audience)
            if members is None or watcher not in members.watchers:
                continue
            watcher.outlet.write(block.data)
            self._sent(watcher, block)
            sent += 1
            if sent % SENT_AT_ONCE == 0:
                await asyncio.sleep(0)
        return sent


def _cut_off(watchers: Iterable[Watcher]) -> None:
    """End watchers that met a fault: they come back, and go on where they are."""
    log.exception("watchers could not be sent to by a fault of this server, and were cut off; report it")
    for watcher in watchers:
        watcher.outlet.abort()
