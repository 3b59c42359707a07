"""Looks whether the store evicts keys: that is refused at the start of workers, but its policy can be changed later."""

import asyncio
import logging
from typing import Final

from redis.exceptions import RedisError

from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.store.check import evicting_policy
from worker.logs.rate_limited_log import RateLimitedLog

EVERY_S: Final = 60.0
LOGGED_EVERY_S: Final = 600.0


class EvictionWatch:
    """`allowed` is the option `allowEvictingStore`."""

    def __init__(self, driver: AsyncDriver, *, allowed: bool) -> None:
        self._driver = driver
        self._allowed = allowed
        self._log = RateLimitedLog(logging.getLogger(__name__), every_s=LOGGED_EVERY_S)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Look once. What the store cannot tell now is asked again; others log that it is away."""
        try:
            policy = None if self._allowed else await self._driver.run(evicting_policy())
        except (StoreUnavailable, RedisError):
            return
        if policy is not None:
            self._log.warning(
                "maxmemory-policy of the store is %s: when memory is short, routes vanish; set noeviction, or "
                "allowEvictingStore=true if they may",
                policy,
            )
