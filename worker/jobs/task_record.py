"""What is recorded of each run of a periodic job: counts of this process, and in the store when it ended well last."""

import logging
from collections.abc import Callable, Iterator

import redis

from metrics import catalogue as metrics
from metrics.counts import Counts, Histograms, Observed
from metrics.samples import Sample
from registry.errors import StoreUnavailable
from registry.keys import Keys
from registry.plans import Plan
from registry.task_times import note_success
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["TaskRecord"]

log = RateLimitedLog(logging.getLogger(__name__), every_s=60.0)


class TaskRecord:
    """Of one process that runs jobs; `run` runs a plan on the store."""

    def __init__(self, keys: Keys, run: Callable[[Plan[None]], None]) -> None:
        self._keys = keys
        self._run = run
        self._runs = Counts(metrics.TASK_RUNS)
        self._durations = Histograms(metrics.TASK_DURATION)

    def ran(self, task: str, every_s: int, seconds: float, *, succeeded: bool) -> None:
        """Record a run of a job that is to run so often."""
        self._runs.add(task, "ok" if succeeded else "failed")
        self._durations.of(task).observe(seconds)
        if not succeeded:
            return
        try:
            self._run(note_success(self._keys, task, every_s))
        except (redis.RedisError, StoreUnavailable) as error:
            log.warning(
                "when job %s ended well last is not recorded: %s; compare the rights of the user with docs/redis.md if "
                "that stays",
                task,
                error,
            )

    def read(self) -> Iterator[Sample | Observed]:
        """Yield what is counted here as values of metrics."""
        yield from self._runs.read()
        yield from self._durations.read()
