"""The timetable: what runs how often."""

from collections.abc import Callable

import msgspec

from registry.options import Options
from worker import jobs

QUEUE = "upkeep"
PIPELINE_QUEUE = "pipeline-runs"
PIPELINE_RUN = "pipeline.scheduled.run"  # by name: it runs in a process with Spark, which this one has not
TIMEOUT_S = 60


class Periodic(msgspec.Struct, frozen=True):
    """A job that runs once in each slot of `every_s` seconds, counted from the epoch by the queue's Redis clock."""

    job: Callable[[], object] | str
    every_s: int
    queue: str = QUEUE
    timeout_s: int = TIMEOUT_S

    @property
    def name(self) -> str:
        return self.job if isinstance(self.job, str) else self.job.__name__

    def slot(self, now_s: float) -> int:
        """The number of the slot that is now."""
        return int(now_s // self.every_s)

    def queue_of(self, namespace: str) -> str:
        """Its queue: one Redis may serve several name servers, and a job is of the one whose worker takes it."""
        return f"{self.queue}:{namespace}"

    def id_of(self, namespace: str, slot: int) -> str:
        """RQ has one space of ids for all queues, and no dots in them."""
        return f"{self.name.replace('.', '-')}-{slot}-{namespace.replace('_', '__').replace('.', '_-')}"


JOBS = (
    Periodic(jobs.expire_brokers, every_s=1),
    Periodic(jobs.settle_owed, every_s=10),
    Periodic(jobs.trim_events, every_s=10),
    Periodic(jobs.restate_tables, every_s=2),
)


def timetable(options: Options) -> tuple[Periodic, ...]:
    """The jobs of a name server with these options."""
    every_s = options.pipeline_every_millis // 1000
    if not every_s:
        return JOBS
    return (*JOBS, Periodic(PIPELINE_RUN, every_s, PIPELINE_QUEUE, timeout_s=every_s))
