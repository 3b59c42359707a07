"""Standstill: a worker whose process or machine stood still asks the store before it answers from its caches again.

A process that is stopped, a machine that is suspended or too busy: what changed meanwhile is not in the caches yet. So
each answer from a cache is preceded by a look at the clock here, and a timer looks while no request comes.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from worker.background import pause
from worker.logs.rate_limited_log import RateLimitedLog
from worker.watch.boot_clock import boot_time
from worker.watch.readiness import LATE_S
from worker.watch.stream_connection import StreamConnection
from worker.watch.ticker import Ticker

LOOK_EVERY_S: Final = 0.25
LONGEST_S: Final = 0.75
"""Between two looks at the clock; so no standstill of this length is overlooked, and lookups are at most 1 s behind."""
ASK_S: Final = 2.0
"""For so long requests wait for the store; a client waits 3 s."""
ROUNDS: Final = 3
"""So often the store is asked where this worker stands still again meanwhile."""
AT_ONCE: Final = 64
"""Requests that go on in one iteration of the loop."""

log = RateLimitedLog(logging.getLogger(__name__))


class Standstill:
    """Notices that one worker stood still; `began` is then called."""

    def __init__(self, follower: StreamConnection, ticker: Ticker, began: Callable[[], None]) -> None:
        self._follower = follower
        self._ticker = ticker
        self._began = began
        self._looked_at = boot_time()
        self._number = 0
        self._asking: asyncio.Task[None] | None = None
        self._waiting: list[Callable[[], object]] = []

    def lasts(self) -> bool:
        """Return whether what is cached may be old, because the store was not asked since this worker stood still."""
        now = boot_time()
        if now - self._looked_at > LONGEST_S:
            self._found(now - self._looked_at)
        self._looked_at = now
        return self._asking is not None

    def when_over(self, do: Callable[[], object]) -> None:
        """Call `do` when the store was asked, or could not be in time."""
        self._waiting.append(do)

    async def run(self) -> None:
        """Look every quarter of a second, until cancelled."""
        while True:
            self.lasts()
            if self._follower.connected and self._follower.silent_for_s() > LATE_S:
                log.warning(
                    "the event stream was not read for %.1f s; it is read over another connection, report this if it "
                    "comes again",
                    self._follower.silent_for_s(),
                )
                self._follower.doubt()
            await pause(LOOK_EVERY_S)

    def stop(self) -> None:
        """Let go on what waits."""
        if self._asking is not None:
            self._asking.cancel()
            self._over()

    def _found(self, for_s: float) -> None:
        log.warning(
            "this worker stood still for %.1f s: nothing is answered from caches before the event stream and the "
            "leases were read again; look for what stopped it, or a machine that is too busy",
            for_s,
        )
        self._number += 1
        self._began()
        self._follower.doubt()
        self._ticker.doubt()
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())

    async def _ask(self) -> None:
        try:
            for _ in range(ROUNDS):
                asked = self._number
                await self._answered()
                if asked == self._number:
                    return
        finally:
            self._over()

    def _over(self) -> None:
        self._asking = None
        self._go_on()

    async def _answered(self) -> None:
        try:
            async with asyncio.timeout(ASK_S):
                await self._follower.following(ASK_S)
                await self._ticker.ticked()
        except TimeoutError:
            log.warning(
                "the store did not answer within %g s after a standstill: routes are answered as they were; see to the "
                "store",
                ASK_S,
            )

    def _go_on(self) -> None:
        waiting, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        for do in waiting:
            asyncio.get_running_loop().call_soon(do)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._go_on)
