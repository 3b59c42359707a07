"""The meter of a scheduler: events that it counts for all, the walk over the tables, jobs that wait."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from redis.exceptions import RedisError

from metrics import catalogue as metrics
from metrics.counts import Counts, Observed
from metrics.metric import Scope
from metrics.publisher import PUBLISH_EVERY_S, Publisher
from metrics.samples import Sample
from metrics.store_commands import StoreCommands
from registry.repair.state import Repaired
from worker.background import pause
from worker.jobs.event_counts import EventCounts
from worker.jobs.route_checker import RouteChecker
from worker.jobs.task_record import TaskRecord

__all__ = ["ROLE", "SchedulerMeter"]

ROLE: Final = "scheduler"
"""Of these processes."""


class SchedulerMeter:
    """`waiting` returns how many jobs wait in each queue, by its name without the namespace. Raises RedisError."""

    def __init__(
        self,
        namespace: str,
        commands: StoreCommands,
        events: EventCounts,
        walks: TaskRecord,
        checker: RouteChecker,
        waiting: Callable[[], dict[str, int]],
    ) -> None:
        self._sources = commands.read, events.read, walks.read, checker.read
        self._waiting = waiting
        self._depths = dict.fromkeys(metrics.QUEUE.values, 0)
        self.repaired = Counts(metrics.TABLE_REPAIRS)
        self.publish: Final = Publisher(namespace, Scope.JOBS, ROLE, self._read).publish

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            with suppress(RedisError):  # the timetable says so
                self._depths |= await asyncio.to_thread(self._waiting)
            self.publish()
            await pause(PUBLISH_EVERY_S)

    def count_repaired(self, repaired: Repaired) -> None:
        """Count what a walk has repaired."""
        for table in repaired.__struct_fields__:
            self.repaired.add(table, by=getattr(repaired, table))

    def _read(self) -> Iterator[Sample | Observed]:
        for read in self._sources:
            yield from read()
        yield from self.repaired.read()
        for queue, waiting in self._depths.items():
            yield Sample(metrics.TASK_QUEUE_DEPTH, (queue,), waiting)
