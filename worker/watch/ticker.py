"""The ticker: renews the lease of this worker each second, and leaves out brokers the moment their lease ends.

An end of a lease is no event of the stream: it is recorded later, by the first job or worker. So each worker asks for
leases that have run out, once a second and once more when the next one does.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from contextlib import suppress
from time import time

from redis.exceptions import RedisError

from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.expiry.holds import HoldRule
from registry.expiry.worker_lease import HORIZON_MS, OVERDUE_MOST, Tick, end_lease, names_of_members, tick
from registry.keys import Keys
from registry.plans import Origin
from registry.removal import expire
from worker.watch.boot_clock import boot_time

PERIOD_S = 1.0
SPACING_S = 0.005  # between two ticks at ends of leases
UNRECORDED_MS = 10_000  # so long overdue: the job that records lapses is not running

log = logging.getLogger(__name__)


class Ticker:
    """At every tick `changed` gets the broker names of members whose lease has ended, or was renewed after all.

    `rule` says when many leases are held, None for never; `follows` whether the stream is followed now; `hidden` gets
    for how long (s) each lease was over that was found to be; `behind_s` is by how much what was applied of the stream
    is behind its end."""

    def __init__(
        self,
        driver: AsyncDriver,
        keys: Keys,
        worker_id: str,
        changed: Callable[[set[str]], None],
        rule: HoldRule | None = None,
        follows: Callable[[], bool] = lambda: True,
        hidden: Callable[[float], None] = lambda _: None,
        behind_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._driver = driver
        self._keys = keys
        self._worker_id = worker_id
        self._changed = changed
        self._rule = rule
        self._follows = follows
        self._overdue: dict[str, int] = {}
        self._expiring: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)
        self._started_ms: int | None = None
        self._ahead_ms = 0.0  # of the Redis clock against this loop's
        self._failed = False
        self._since: float | None = None  # when the ticks of this row of successes began
        self._woken = asyncio.Event()
        self._doubts = 0
        self._sure = asyncio.Event()
        self._ticked_at = boot_time()
        self._hidden = hidden
        self._behind_s = behind_s
        self.clock_offset_s = 0.0
        """This machine's clock less that of Redis."""

    async def run(self) -> None:
        """Tick until cancelled, the first time at once."""
        while True:
            self._woken.clear()
            pause = await self.step()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._woken.wait()

    def leased(self, timeout_ms: int) -> None:
        """Note a registration with this timeout: a short lease may end before the next tick would see it."""
        if timeout_ms < HORIZON_MS:
            self._woken.set()

    def doubt(self) -> None:
        """Tick at once: what the last tick saw may be long ago."""
        self._doubts += 1
        self._sure.clear()
        self._woken.set()

    async def ticked(self) -> None:
        """Wait until a tick has succeeded that began after the last `doubt`."""
        await self._sure.wait()

    async def step(self) -> float:
        """Tick once; return the seconds until the next tick is due."""
        doubts = self._doubts
        try:
            origin = self._origin("tick")
            asked = tick(
                self._keys,
                self._worker_id,
                origin,
                self._rule,
                follows=self._follows(),
                behind_ms=int(self._behind_s() * 1000),
            )
            seen = await self._driver.run(asked)
            await self._note(seen)
        except StoreUnavailable as error:
            return self._missed("leases cannot be watched: %s; retries every %g s", error)
        except (RedisError, ValueError) as error:  # it refuses, or what it has is damaged
            return self._missed(
                "leases cannot be watched: %s; retries every %g s, compare keys and rights with docs/redis.md",
                error,
            )
        if self._failed:
            log.warning("leases are watched again")
        self._failed, self._ticked_at = False, boot_time()
        if doubts == self._doubts:
            self._sure.set()
        if self._since is None:
            self._since = asyncio.get_running_loop().time()
        if seen.next_end_ms is None:
            return PERIOD_S
        return min(max((seen.next_end_ms - seen.now_ms) / 1000, SPACING_S), PERIOD_S)

    def _missed(self, message: str, error: Exception) -> float:
        """Note a tick that failed; return the seconds until the next."""
        if not self._failed:
            log.warning(message, error, PERIOD_S)
        self._failed, self._since = True, None
        return PERIOD_S

    def started_ms(self) -> int | None:
        """Return when the service began (Unix ms of the Redis clock), as the last tick said; None before the first."""
        return self._started_ms

    def service_age_s(self) -> float | None:
        """Return how long the service has run, in seconds, whichever workers it had; None before the first tick."""
        if self._started_ms is None:
            return None
        return (self._loop_ms() + self._ahead_ms - self._started_ms) / 1000

    def store_ms(self) -> float | None:
        """Return the time now by the Redis clock (Unix ms); None before the first tick."""
        return None if self._started_ms is None else self._loop_ms() + self._ahead_ms

    def good_for_s(self) -> float:
        """Return for how many seconds all ticks have succeeded; 0 when the last one did not."""
        return 0.0 if self._since is None else asyncio.get_running_loop().time() - self._since

    def silent_for_s(self) -> float:
        """Return how many seconds ago a tick succeeded last."""
        return boot_time() - self._ticked_at

    async def stop(self) -> None:
        """Wait until the lapses under way are recorded, and end the lease of this worker, which ticks no more."""
        if self._expiring is not None:
            await asyncio.gather(self._expiring, return_exceptions=True)
        with suppress(StoreUnavailable, RedisError):  # it ends by itself, only later
            await self._driver.run(end_lease(self._keys, self._worker_id))

    async def _note(self, seen: Tick) -> None:
        if seen.back_ms:
            log.warning(
                "the store's clock went back by %.1f s: leases that were given before are cut within a minute; compare "
                "the clocks of the store's machines with a time server (NTP)",
                seen.back_ms / 1000,
            )
        self._started_ms, self._ahead_ms = seen.started_ms, seen.now_ms - self._loop_ms()
        self.clock_offset_s = time() - seen.now_ms / 1000
        before, now = self._overdue, seen.overdue
        moved = {member for member in before.keys() | now.keys() if before.get(member) != now.get(member)}
        names = await self._driver.run(names_of_members(self._keys, moved)) if moved else set()
        if self._since is not None:
            for member in now.keys() - before.keys():
                self._hidden(max(seen.now_ms - now[member], 0) / 1000)
        self._overdue = now
        self._changed(names)
        late = any(seen.now_ms - end > UNRECORDED_MS for end in now.values())
        more = len(now) >= OVERDUE_MOST  # which leave answers as soon as these are recorded
        if (late or more) and (self._expiring is None or self._expiring.done()):
            self._expiring = asyncio.get_running_loop().create_task(self._expire())

    async def _expire(self) -> None:
        try:
            await self._driver.run(expire(self._keys, self._origin("expire")))
        except Exception as error:  # this task is not awaited
            log.warning(
                "ended leases were not recorded: %s; the next tick or an upkeep job records them", error
            )

    def _origin(self, what: str) -> Origin:
        return Origin(f"{self._worker_id}-{what}-{next(self._numbers):x}", f"worker:{self._worker_id}")

    @staticmethod
    def _loop_ms() -> float:
        return asyncio.get_running_loop().time() * 1000
