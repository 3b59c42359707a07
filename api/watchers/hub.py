"""All watchers of a process: each gets the messages behind its position, in order, each once.

Those that have read all are a crowd (`crowd.py`). One that comes back, or reads more slowly, goes on by itself, from
the backlog or from the store, until it is where the crowd is."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from redis.exceptions import RedisError

from api.counters import COUNTERS
from api.watchers.backlog import Backlog
from api.watchers.catching_up import CatchingUp
from api.watchers.crowd import Crowd
from api.watchers.feed import Feed
from api.watchers.messages import Message
from api.watchers.stalled import Stalled
from api.watchers.watcher import TICK_S, Block, Watcher
from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.keys import Keys
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["Hub"]

BATCH_BYTES: Final = 1 << 18
"""What one that is behind is sent before it has read what it was sent before; a single message may be longer."""

logger = logging.getLogger(__name__)
log = RateLimitedLog(logger)
unavailable = (StoreUnavailable, RedisError)


class Hub:
    """Made on the loop it will run on. What watchers have not read takes `held_most` bytes at most, and is read within
    `slow_s`. `left` is called for each that ends."""

    def __init__(
        self, keys: Keys, driver: AsyncDriver, left: Callable[[], None], *, held_most: int, slow_s: float
    ) -> None:
        self._keys = keys
        self._driver = driver
        self._catching_up = CatchingUp(keys, driver, self._send, self._write)
        self._left = left
        self._loop = asyncio.get_running_loop()
        self._crowd = Crowd(self._sent)
        self._stalled = Stalled(held_most, slow_s)
        self._alone: dict[Watcher, asyncio.Task[None]] = {}
        self._long_polls: dict[Watcher, None] = {}
        self._is_ready = asyncio.Event()
        self.feed: Final = Feed(self._crowd)
        self.holders: Final = self._crowd.holders
        self.watchers: Final[dict[Watcher, None]] = {}

    # What a watcher goes through.

    def begin(self, watcher: Watcher) -> None:
        """Have a watcher sent what is behind its position, or what comes from now on."""
        watcher.outlet.on_drained = partial(self._drained, watcher)
        watcher.outlet.on_ended = partial(self._ended, watcher)
        self.watchers[watcher] = None
        if watcher.audience.form.ends:
            self._long_polls[watcher] = None
        self._crowd.watch(watcher)
        self._go_on_alone(watcher)

    def _go_on(self, watcher: Watcher) -> None:
        """Send a watcher what the backlog has for it; it is one of the crowd then."""
        backlog = self.feed.backlog
        while watcher in self.watchers and watcher.stalled is None:
            if backlog is None or watcher.number < backlog.first:
                self._go_on_alone(watcher)
                return
            if watcher.number >= self._crowd.boundary:
                self._crowd.join(watcher)
                return
            self._send(watcher, self._from_backlog(watcher, backlog))

    def _from_backlog(self, watcher: Watcher, backlog: Backlog) -> list[Message]:
        """Return the next messages for a watcher, and count it as behind them."""
        messages: list[Message] = []
        held = 0
        while watcher.number < self._crowd.boundary and held < BATCH_BYTES:
            messages.append(backlog.message(watcher.number))
            held += messages[-1].bytes
            watcher.number += 1
        return messages

    def _send(self, watcher: Watcher, messages: list[Message]) -> None:
        """Send what is wanted of messages: which brokers held a topic when they were recorded is not known."""
        wanted = []
        for message in messages:
            if (chosen := message.wanted(watcher.audience.wanted, None)) is not None:
                wanted.append((message, chosen))
                COUNTERS.watch_events("sent" if message.cause is None else "reset", 1)
            watcher.position = message.position
        if wanted:
            self._write(watcher, watcher.audience.block(wanted, watcher.position))

    def _write(self, watcher: Watcher, block: Block) -> None:
        watcher.outlet.write(block.data)
        self._sent(watcher, block)

    def _sent(self, watcher: Watcher, block: Block) -> None:
        """End what ends with this; let one that has not read it leave the crowd until it has."""
        if watcher.audience.form.ends:
            watcher.outlet.finish()
        if watcher in self.watchers and watcher.outlet.held:
            self._crowd.leave(watcher)
            self._stalled.add(watcher, block, self._loop.time())
            self._cut_off_stalled()

    def _drained(self, watcher: Watcher) -> None:
        """Go on with a watcher that has read what it had not, if it waited for that."""
        if watcher.stalled is None:
            return
        self._stalled.remove(watcher)
        if watcher.read is not None:
            watcher.read.set_result(None)
            watcher.read = None
        elif watcher not in self._alone:
            self._go_on(watcher)

    def _ended(self, watcher: Watcher) -> None:
        """Forget a watcher whose connection is over."""
        del self.watchers[watcher]
        self._left()
        self._long_polls.pop(watcher, None)
        self._stalled.remove(watcher)
        self._crowd.forget(watcher)
        if (task := self._alone.pop(watcher, None)) is not None:
            task.cancel()

    # One whose position is not in the backlog, or that has none yet.

    def _go_on_alone(self, watcher: Watcher) -> None:
        self._alone[watcher] = self._loop.create_task(self._catch_up(watcher))

    async def _catch_up(self, watcher: Watcher) -> None:
        """Send a watcher what the store has behind its position, up to where the backlog goes on."""
        try:
            await self._is_ready.wait()
            if self.feed.backlog is None:
                raise RuntimeError("ready without a backlog")
            await self._catching_up.bring(watcher, self.feed.backlog)
            watcher.open()
        except Exception:
            logger.exception("a watcher met a fault of this server, and was cut off; report it")
            watcher.outlet.abort()
        self._alone.pop(watcher, None)
        self._go_on(watcher)

    # What runs beside.

    async def prepare(self) -> None:
        """Wait until the stream is followed, and fill the backlog with what was recorded before; without that each
        watcher reads it by itself."""
        await self.feed.begun.wait()
        try:
            await self.feed.read_before(self._driver, self._keys)
        except unavailable as error:
            log.warning("the event stream cannot be read: %s; each watcher reads it", error)
        except Exception:
            logger.exception("what was recorded before cannot be read by a fault of this server; report it")
        self._is_ready.set()

    async def run(self) -> None:
        """Send what comes, and once a second what time brings, until cancelled."""
        while True:
            until = self._loop.time() + TICK_S
            while self._loop.time() < until:
                await self._crowd.pass_or(until, self._go_on)
            await self._crowd.tick()
            self._tick(self._loop.time())

    def _tick(self, now: float) -> None:
        for watcher in [one for one in self._long_polls if one.until <= now and one.stalled is None]:
            self.finish(watcher)
        self._cut_off_stalled()

    def _cut_off_stalled(self) -> None:
        for watcher in self._stalled.overdue(self._loop.time()):
            log.warning("a watcher does not read what it is sent and was cut off; it may go on where it was")
            COUNTERS.watch_events("dropped", 1)
            watcher.outlet.abort()

    def finish(self, watcher: Watcher) -> None:
        """End an answer: that of a long poll has no messages, and says where to go on."""
        self._crowd.leave(watcher)
        if watcher.audience.form.ends and watcher.stalled is None:
            self._write(watcher, watcher.audience.block((), watcher.position))
        else:
            watcher.outlet.finish()

    def end(self, *, gently: bool) -> None:
        """End all watchers: gently, so that those that read have all that was sent."""
        for watcher in [*self.watchers]:
            if gently:
                self.finish(watcher)
            else:
                watcher.outlet.abort()
