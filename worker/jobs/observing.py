"""Shows each entry of the stream to observers, in the one of all schedulers that has the claim of the walk.

They are shown first, then what they counted is published, then the position is written: a process that is killed
between has its last entries shown again by the next one, at most one read of them."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from redis.exceptions import RedisError

from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.events.entry import Event
from registry.events.observed import Claim, Position, Unobserved, read_next, write_position
from registry.keys import Keys
from registry.plans import Plan
from worker.background import pause
from worker.logs.rate_limited_log import RateLimitedLog
from worker.watch.boot_clock import boot_time

__all__ = ["StreamObserver"]

LOOK_EVERY_S: Final = 1.0
"""How late an entry is shown, and how soon after a claim."""
REST_S: Final = 0.05
"""Between two reads of a process that is behind: some 4,000 entries a second."""
REPORT_EVERY_MS: Final = 10_000
"""How often a position is written at which nothing came."""
MARGIN_S: Final = 1.0
"""So much before the claim ends by this machine's clock, nothing is shown any more."""
SKIPPED_EVERY_S: Final = 10.0
"""A line about changes that were trimmed before at most."""

lines = logging.getLogger(__name__)
log = RateLimitedLog(logging.getLogger(__name__), every_s=60.0)


def _nothing() -> Plan[None]:
    yield from ()


class Observer(Protocol):
    """What is shown each entry once; `recall` gets some that another process's observer was shown."""

    def observe(self, event: Event) -> None:
        """Log or count an entry."""

    def recall(self, event: Event) -> None:
        """Note an entry, for those alike that follow."""


class StreamObserver:
    """When observers were shown entries, `publish` is called and `note` run, before the position is written."""

    def __init__(
        self,
        driver: AsyncDriver,
        keys: Keys,
        claim: Claim,
        *observers: Observer,
        publish: Callable[[], None] = lambda: None,
        note: Callable[[], Plan[None]] = _nothing,
    ) -> None:
        self._driver = driver
        self._keys = keys
        self._claim = claim
        self._observers: Final = observers
        self._publish = publish
        self._note = note
        self._reached: Position | None = None
        self._skipped, self._skipped_due_s = 0, 0.0
        self._writing: asyncio.Future[bool] | None = None

    async def run(self) -> None:
        """Observe until cancelled."""
        failed = False
        while True:
            try:
                more = await self.observe_next()
                if failed:
                    lines.warning("changes are logged and counted again")
                failed = False
            except (RedisError, StoreUnavailable) as error:
                log.warning(
                    "changes are not logged and counted now, but later: %s; tried again each second, compare the "
                    "rights of the user with docs/redis.md if the store refuses",
                    error,
                )
                more, failed = False, True
            await (asyncio.sleep(REST_S) if more else pause(LOOK_EVERY_S))

    async def observe_next(self) -> bool:
        """Show the next entries, unless another process has the claim; return whether there may be more.

        Raises RedisError and StoreUnavailable."""
        until_s = boot_time() + self._claim.ttl_ms / 1000 - MARGIN_S
        unobserved = await self._driver.run(read_next(self._keys, self._claim, self._reached))
        if unobserved is None:
            self._reached = None  # what is written goes on meanwhile
            return False
        if unobserved.went_back:
            log.warning(
                "the event stream ends before the last change that was logged, as after a failover; compare the log "
                "from %s on with `mqns events`",
                unobserved.position.id,
            )
        position = self._reached = self._show(unobserved, until_s)
        if position.id != unobserved.position.id:
            self._publish()
            await self._driver.run(self._note())
        self._report_skipped(position)
        await self._write(position, unobserved)
        return unobserved.more

    async def close(self) -> None:
        """Wait until the position is written, which goes on behind a cancelled `run`."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)

    def _show(self, unobserved: Unobserved, until_s: float) -> Position:
        """Show entries until the claim may have ended; return the position behind them."""
        for event in reversed(unobserved.observed):
            for observer in self._observers:
                _pass(observer.recall, event)
        shown = 0
        for event in unobserved.events:
            if boot_time() >= until_s:  # this process stood still
                break
            for observer in self._observers:
                _pass(observer.observe, event)
            shown += 1
        position, skipped = unobserved.position.behind(unobserved.events[:shown])
        self._skipped += skipped
        return position

    def _report_skipped(self, position: Position) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._skipped and now_s >= self._skipped_due_s:
            lines.warning(
                "%d changes before %s are neither logged nor counted: they were trimmed before; `mqns audit` has those "
                "of operators",
                self._skipped,
                position.id,
            )
            self._skipped, self._skipped_due_s = 0, now_s + SKIPPED_EVERY_S

    async def _write(self, position: Position, unobserved: Unobserved) -> None:
        moved = position.id != unobserved.position.id or unobserved.went_back
        if moved or unobserved.now_ms - position.at_ms >= REPORT_EVERY_MS:
            position.at_ms = unobserved.now_ms
            plan = write_position(self._keys, self._claim, position)
            self._writing = asyncio.ensure_future(self._driver.run(plan))
            await asyncio.shield(self._writing)


def _pass(take: Callable[[Event], None], event: Event) -> None:
    try:
        take(event)
    except Exception as error:
        log.warning(
            "entry %s of the event stream cannot be logged or counted: %r; find out what wrote it",
            event.id,
            error,
        )
