"""Counts topics and queues for metrics: in one of all schedulers.

Not a job of the queue: of a large namespace it takes longer than other jobs may wait."""

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Final

from redis.exceptions import RedisError

from registry import topic_counts
from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.keys import Keys
from worker.jobs.task_record import TaskRecord
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["TopicCounter"]

EVERY_S: Final = 30.0
"""From the begin of a count to that of the next; one that takes longer is followed by the next at once."""
LOOK_EVERY_S: Final = 5.0
"""How often another process asks whether it is to count."""
TASK: Final = "count_topics"
"""As metrics have it."""

log = RateLimitedLog(logging.getLogger(__name__), every_s=60.0)


class TopicCounter:
    """`counts_here` is asked whether this process counts; `record` notes each count."""

    def __init__(
        self, driver: AsyncDriver, keys: Keys, record: TaskRecord, counts_here: Callable[[], bool]
    ) -> None:
        self._driver = driver
        self._keys = keys
        self._record = record
        self._counts_here = counts_here

    async def run(self) -> None:
        """Count until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            if not self._counts_here():
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            began_at = clock()
            await self.count()
            await asyncio.sleep(max(began_at + EVERY_S - clock(), 0.0))

    async def count(self) -> None:
        """Count once, and store it."""
        began_s = perf_counter()
        try:
            counts = await self._driver.run(topic_counts.count(self._keys))
            await self._driver.run(topic_counts.store(self._keys, counts))
        except (RedisError, StoreUnavailable) as error:
            log.warning(
                "topics are not counted for metrics: %s; if that stays, compare the rights of the user with "
                "docs/redis.md",
                error,
            )
            succeeded = False
        else:
            succeeded = True
        self._record.ran(TASK, int(EVERY_S), perf_counter() - began_s, succeeded=succeeded)
