"""Has a worker's records of access written, and proofs of cached requests end, so that what uses them is noted."""

import asyncio
import itertools
import logging
from contextlib import suppress
from typing import Final

from redis.exceptions import RedisError

from access.records import WRITE_EVERY_S
from registry.drivers import AsyncDriver
from registry.errors import RegistryError
from registry.keys import Keys
from registry.plans import Origin
from worker.cache.cached_requests import CachedRequests
from worker.guard import Guard
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["PROVE_EVERY_S", "AccessRecords"]

PROVE_EVERY_S: Final = 300.0
"""How long a request may be answered by its bytes alone before its signature is verified again."""
AT_ONCE: Final = 1_000
"""Cached requests that are dropped before others have their turn, some ms."""

LAST_WRITE_S: Final = 0.5

log = RateLimitedLog(logging.getLogger(__name__), 60.0)


class AccessRecords:
    """Those that a guard keeps. `requests` are the cached requests that it has found to be proved."""

    def __init__(
        self, guard: Guard, driver: AsyncDriver, keys: Keys, worker_id: str, requests: CachedRequests
    ) -> None:
        self._records = guard.records
        self._shown = guard.shown
        self._driver = driver
        self._keys = keys
        self._worker_id = worker_id
        self._requests = requests
        self._numbers = itertools.count(1)

    async def run(self) -> None:
        """Write every WRITE_EVERY_S until cancelled."""
        time = asyncio.get_running_loop().time
        proved_at = time()
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            if time() - proved_at >= PROVE_EVERY_S:
                proved_at = time()
                await self.forget_proven()
            await self.write()

    async def stop(self) -> None:
        """Write for the last time, if the store takes it at once."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WRITE_S):
                await self.write()

    async def write(self) -> None:
        """Write what is new; while the store is away it is kept, within bounds."""
        self._records.uses.note(*self._shown.credentials())
        if not self._records.are_pending:
            return
        origin = Origin(f"{self._worker_id}-access-{next(self._numbers):x}", f"worker:{self._worker_id}")
        try:
            await self._driver.run(self._records.write(self._keys, origin))
        except (RegistryError, RedisError) as error:
            log.warning("records of access are not written: %s; they are once the store takes them", error)

    async def forget_proven(self) -> None:
        """Have all requests decoded again whose bytes alone proved their callers."""
        requests = self._requests
        proven = [cached for cached in requests.replies.entries.values() if not cached.needs]
        for number, cached in enumerate(proven, 1):
            requests.drop(cached)
            requests.routes.evicted(cached)
            if not number % AT_ONCE:
                await asyncio.sleep(0)
