"""Watchers whose position is not in the backlog: they are sent what the store has, until they are where it begins."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from redis.exceptions import RedisError

from api.watchers.backlog import Backlog
from api.watchers.history import History, SharedReads
from api.watchers.messages import Message
from api.watchers.watcher import HEARTBEAT_TICKS, TICK_S, Block, Watcher
from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.events.entry import FIRST
from registry.keys import Keys
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["CatchingUp"]

READING_AT_ONCE: Final = 2
"""Watchers for which the store is read."""
AGAIN_S: Final = 0.25
"""Until a store that did not reply, or a follower that is behind, is asked again."""

log = RateLimitedLog(logging.getLogger(__name__))


class CatchingUp:
    """Made on the loop it will run on; `send` sends a watcher what it wants of messages, `write` bytes."""

    def __init__(
        self,
        keys: Keys,
        driver: AsyncDriver,
        send: Callable[[Watcher, list[Message]], None],
        write: Callable[[Watcher, Block], None],
    ) -> None:
        self._keys = keys
        self._driver = driver
        self._send = send
        self._write = write
        self._reading = asyncio.Semaphore(READING_AT_ONCE)
        self._shared = SharedReads()

    async def bring(self, watcher: Watcher, backlog: Backlog) -> None:
        """Send a watcher what is behind its position and not in the backlog; set the number that it goes on with. One
        without a position begins behind all."""
        if watcher.position is None:
            watcher.position, watcher.number = backlog.position, backlog.end
            return
        history = History(self._keys, watcher.position)
        while (number := backlog.number_behind(history.position)) is None:
            watcher.open()
            messages, is_last = await self._read(history)
            self._send(watcher, messages)
            messages = []  # else they are held for as long as the watcher does not read
            watcher.position = history.position
            self._show_position(watcher)
            if watcher.stalled is not None:
                watcher.read = asyncio.get_running_loop().create_future()
                await watcher.read
            if is_last:
                await asyncio.sleep(AGAIN_S)
        watcher.number = number

    async def _read(self, history: History) -> tuple[list[Message], bool]:
        async with self._reading:
            try:
                return await self._driver.run(self._shared.next_messages(history))
            except (StoreUnavailable, RedisError) as error:
                log.warning("the event stream cannot be read for a watcher: %s; it is read again", error)
                return [], True

    def _show_position(self, watcher: Watcher) -> None:
        """Send one that is sent little where it is, as often as others have a heartbeat: else it would seem dead, and
        begin again where it was."""
        now = asyncio.get_running_loop().time()
        if now - watcher.shown_at < HEARTBEAT_TICKS * TICK_S or watcher.stalled is not None:
            return
        watcher.shown_at = now
        heartbeat = watcher.audience.form.heartbeat(watcher.position or FIRST)
        if heartbeat and not watcher.outlet.closed:
            self._write(watcher, Block(watcher.audience.framed(heartbeat)))
