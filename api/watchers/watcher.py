"""One watcher: what it wants, where it is, and what it was sent and has not read."""

import asyncio
import random
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

from api.watchers.forms import LONG_POLL, SSE, Form
from api.watchers.messages import Chosen, Message
from api.watchers.outlet import Outlet, chunk_of
from registry.events.entry import FIRST, EventId
from registry.events.watched import Wanted

__all__ = ["HEARTBEAT_TICKS", "TICK_S", "Audience", "Block", "Watcher"]

RETRY_LEAST_MS: Final = 500
RETRY_MOST_MS: Final = 3500
"""When watchers come back whose connections ended: spread, for a worker that ends ends all of its own at once."""
TICK_S: Final = 1.0
HEARTBEAT_TICKS: Final = 15
"""Each watcher has a heartbeat in so many ticks: proxies close connections that are silent for a minute."""


class Audience(msgspec.Struct, frozen=True):
    """Watchers that get the same bytes: they want the same entries in the same form."""

    wanted: Wanted
    is_long_poll: bool = False
    chunked: bool = True

    @property
    def form(self) -> Form:
        return LONG_POLL if self.is_long_poll else SSE

    def framed(self, data: bytes) -> bytes:
        """Return a part of an answer as it is sent."""
        return chunk_of(data) if self.chunked and data else data

    def block(self, messages: Sequence[tuple[Message, Chosen]], position: EventId | None) -> "Block":
        """Return messages, with these of their entries, as they are sent together; `position` is behind them."""
        texts = [self.form.text(message, chosen) for message, chosen in messages]
        return Block(self.framed(self.form.joined(texts, position)))


class Block:
    """Bytes that were sent to watchers, and how many of them have not read them."""

    __slots__ = ("data", "holders")

    def __init__(self, data: bytes) -> None:
        self.data: Final = data
        self.holders = 0


class Watcher:
    """A connection and its place in the stream: `position` is behind what it was sent, None before it begins, `number`
    that of its next message, while it does not go on with the others (`crowd.py`)."""

    __slots__ = (
        "admission",
        "audience",
        "number",
        "opened",
        "outlet",
        "position",
        "read",
        "shown_at",
        "stalled",
        "stalled_since",
        "turn",
        "until",
    )

    def __init__(
        self,
        audience: Audience,
        after: EventId | None,
        outlet: Outlet,
        until: float,
        admission: Hashable = None,
    ) -> None:
        self.audience: Final = audience
        self.admission: Final = admission
        self.outlet: Final = outlet
        self.position = after
        self.number = 0
        self.until: Final = until
        """When a long poll is over, by the clock of the loop."""
        self.turn: Final = random.randrange(HEARTBEAT_TICKS)
        self.stalled: Block | None = None
        """What it has not read yet; None if it has read all."""
        self.stalled_since = 0.0
        self.read: asyncio.Future[None] | None = None
        """Set where a task waits until it has read all."""
        self.opened = False
        self.shown_at = 0.0
        """When it was sent its position last, by the clock of the loop, while it goes on by itself."""

    def open(self) -> None:
        """Send where this begins, once."""
        if not self.opened:
            self.opened = True
            retry_ms = random.randint(RETRY_LEAST_MS, RETRY_MOST_MS)
            if opening := self.audience.form.opening(self.position or FIRST, retry_ms):
                self.outlet.write(self.audience.framed(opening))
