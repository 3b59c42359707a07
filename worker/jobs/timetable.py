"""The timetable: which job runs how often."""

from collections.abc import Callable

import msgspec

from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Plan
from registry.removal import any_lease_over
from worker.jobs import tasks as jobs

QUEUE = "upkeep"
PIPELINE_QUEUE = "pipeline-runs"
PIPELINE_RUN = "mqpipeline.scheduled.run"  # by name: it runs in a process with Spark, which this one has not
TIMEOUT_S = 60


class Periodic(msgspec.Struct, frozen=True):
    """A job that runs once in each period of `every_s` seconds, counted from the epoch by the queue's Redis clock.

    With `has_work` it does so while that is true, and else once in `resting_every_s`: that shows that it runs."""

    job: Callable[[], object] | str
    every_s: int
    queue: str = QUEUE
    timeout_s: int = TIMEOUT_S
    resting_every_s: int = 0
    has_work: Callable[[Keys], Plan[bool]] | None = None

    @property
    def name(self) -> str:
        return self.job if isinstance(self.job, str) else self.job.__name__

    def period(self, now_s: float) -> int:
        """Return the number of the present period."""
        return int(now_s // self.every_s)

    @property
    def at_least_every_s(self) -> int:
        """In how many seconds it runs once, whether there is work or not."""
        return self.resting_every_s or self.every_s

    def rests(self, period: int) -> bool:
        """Return whether it is not run in a period in which it has no work."""
        return period * self.every_s % self.at_least_every_s != 0

    def queue_of(self, namespace: str) -> str:
        """Return the job's queue: one Redis may serve several name servers, each with its own job workers."""
        return f"{self.queue}:{namespace}"

    def id_of(self, namespace: str, period: int) -> str:
        """Return the id of the job's run in a period: RQ has one space of ids for all queues, and no dots in them."""
        return f"{self.name.replace('.', '-')}-{period}-{namespace.replace('_', '__').replace('.', '_-')}"


JOBS = (
    Periodic(jobs.expire_brokers, every_s=1, resting_every_s=10, has_work=any_lease_over),
    Periodic(jobs.run_deferred, every_s=10),
    Periodic(jobs.trim_events, every_s=10),
    Periodic(jobs.checkpoint_tables, every_s=2),
)


def timetable(options: Options) -> tuple[Periodic, ...]:
    """Return the jobs of a name server with these options."""
    every_s = options.pipeline_every_millis // 1000
    if not every_s:
        return JOBS
    return (*JOBS, Periodic(PIPELINE_RUN, every_s, PIPELINE_QUEUE, timeout_s=every_s))
