"""Announces, while this worker is ready, at which address clients reach it (`registry.announcements`)."""

import logging
from collections.abc import Callable
from typing import Final

from redis.exceptions import RedisError

from registry.announcements import announce
from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.keys import Keys
from worker.background import pause
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["Announcer"]

EVERY_S: Final = 1.0

log = RateLimitedLog(logging.getLogger(__name__), 60.0)


class Announcer:
    """That of a worker, whose `address` is `host:port`, or "" if it has none that it could announce. `is_ready` is
    whether it can serve now."""

    def __init__(
        self, driver: AsyncDriver, keys: Keys, worker_id: str, address: str, is_ready: Callable[[], bool]
    ) -> None:
        self._driver = driver
        self._keys = keys
        self._worker_id = worker_id
        self._address = address
        self._is_ready = is_ready
        self._is_ended = False

    async def run(self) -> None:
        """Announce every EVERY_S until cancelled."""
        while True:
            await self.step()
            await pause(EVERY_S)

    async def step(self) -> None:
        """Announce the address once, if the worker is ready."""
        if not self._address or self._is_ended or not self._is_ready():
            return
        try:
            await self._driver.run(announce(self._keys, self._worker_id, self._address))
        except StoreUnavailable:
            pass  # the ticker logs it
        except RedisError as error:
            log.warning(
                "/rocketmq/nsaddr does not have %s, since the store refuses: %s; compare the rights of its user with "
                "docs/redis.md",
                self._address,
                error,
            )

    def end(self) -> None:
        """Announce no more: the worker makes way. What it said last counts for 5 s, in which the next one of this
        machine begins, so that a reload leaves no moment without an address."""
        self._is_ended = True
