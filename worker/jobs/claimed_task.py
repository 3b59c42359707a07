"""A periodic job that takes long, in one of all schedulers: the one that has the claim of the walk.

Not a job of the queue: of a large namespace it takes longer than other jobs may wait."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

import msgspec
from redis.exceptions import RedisError

from registry.errors import StoreUnavailable
from worker.jobs.task_record import TaskRecord
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["ClaimedTask", "Task"]

LOOK_EVERY_S: Final = 5.0
"""How often another process asks whether it is to run the task."""

lines = logging.getLogger(__name__)
log = RateLimitedLog(logging.getLogger(__name__), every_s=60.0)


class Task(msgspec.Struct, frozen=True):
    """`name` is that of metrics; `every_s` is from the begin of a run to that of the next, and one that takes longer is
    followed by the next at once. `failure` is what the log says of a run that failed. `run` raises RedisError and
    StoreUnavailable."""

    name: str
    every_s: float
    failure: str
    run: Callable[[], Awaitable[None]]


class ClaimedTask:
    """`runs_here` is asked whether this process runs it; `record` notes each run."""

    def __init__(self, task: Task, record: TaskRecord, runs_here: Callable[[], bool]) -> None:
        self._task = task
        self._record = record
        self._runs_here = runs_here
        self._succeeded = True

    async def run(self) -> None:
        """Run it again and again until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            if not self._runs_here():
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            began_at = clock()
            await self.run_once()
            await asyncio.sleep(max(began_at + self._task.every_s - clock(), 0.0))

    async def run_once(self) -> None:
        """Run it once."""
        began_s = perf_counter()
        try:
            await self._task.run()
        except (RedisError, StoreUnavailable) as error:
            log.warning(
                "%s: %s; tried again within %g s, compare the rights of the user with docs/redis.md if the store "
                "refuses",
                self._task.failure,
                error,
                self._task.every_s,
                kind=self._task.name,
            )
            succeeded = False
        else:
            succeeded = True
            if not self._succeeded:
                lines.warning("job %s ends well again", self._task.name)
        self._succeeded = succeeded
        every_s = int(self._task.every_s)
        self._record.ran(self._task.name, every_s, perf_counter() - began_s, succeeded=succeeded)
