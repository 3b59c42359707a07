"""This process as a job worker: its store, what it counts, and what publishes that. Jobs are called without either."""

from collections.abc import Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import redis

from metrics.catalogue import EVENTS_TRIMMED
from metrics.counts import Counts, Observed
from metrics.metric import Scope
from metrics.publisher import Publisher
from metrics.samples import Sample
from metrics.store_commands import StoreCommands
from registry.drivers import Observe, run
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.store import connect as store
from worker.jobs.task_record import TaskRecord

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

__all__ = ["COMMANDS", "ROLE", "TRIMMED", "JobMeter", "connected", "observer", "tracer_of"]

ROLE: Final = "jobs"
"""Of these processes."""
COMMANDS: Final = StoreCommands()
TRIMMED: Final = Counts(EVENTS_TRIMMED)


@cache
def connected(options: Options) -> redis.Redis:
    """Return this process's client of the store."""
    return store.connect(options.redis_url, options.namespace)


@cache
def tracer_of(options: Options) -> "Tracer | None":
    """Return this process's tracer, None without one."""
    if not options.traces:
        return None
    from traces.process import begin

    return begin(options, "jobs")


@cache
def observer(options: Options) -> Observe:
    """Return what observes round trips to the store while jobs run."""
    tracer = tracer_of(options)
    if tracer is None:
        return COMMANDS
    from traces.store import observing

    return observing(tracer, COMMANDS)


class JobMeter:
    """Records runs and publishes what this process counts."""

    def __init__(self, options: Options) -> None:
        runs_plan = partial(run, store=connected(options), observe=COMMANDS)
        self.record = TaskRecord(Keys(options.namespace), runs_plan)
        self._publisher = Publisher(options.namespace, Scope.JOBS, ROLE, self._read)
        self.publish_if_due = self._publisher.publish_if_due

    def _read(self) -> Iterator[Sample | Observed]:
        yield from self.record.read()
        yield from COMMANDS.read()
        yield from TRIMMED.read()
