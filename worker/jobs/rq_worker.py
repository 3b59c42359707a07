"""`python -m worker.jobs.rq_worker`: runs the jobs that schedulers enqueue, one after the other, without forking.

It waits out an outage of the queue before the first job and between jobs; an outage during a job ends the process, and
its supervisor starts it again.
"""

import logging
import os
import signal
import sys
import time
from functools import partial
from typing import Any

import redis
from rq import Queue, SimpleWorker
from rq.exceptions import StopRequested
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.worker import WorkerStatus

from registry.errors import StoreUnavailable
from registry.options import load as configuration
from registry.options.catalogue import Options
from registry.store.connect import connect_queue
from worker.jobs.job_process import JobMeter, tracer_of
from worker.jobs.liveness_file import touch
from worker.jobs.timetable import JOBS
from worker.logs import log_lines
from worker.logs.options_log import log_without_effect
from worker.logs.rate_limited_log import RateLimitedFilter, RateLimitedLog

CONNECT_TIMEOUT_S = 1.0
QUEUE_WAIT_S = 0.5
PERIODS_S = {job.name: job.at_least_every_s for job in JOBS}
TTL_S = 30  # also bounds how long it waits on a connection that is dead

log = logging.getLogger("worker.jobs.rq_worker")
REPEATED_EVERY_S = 60.0  # a line about the same failure
refused = RateLimitedLog(log, every_s=REPEATED_EVERY_S)


class UpkeepWorker(SimpleWorker):
    """The jobs are short: look often whether the queue is back."""

    max_connection_wait_time = 2.0
    liveness_file = ""
    meter: JobMeter

    def perform_job(self, job: Job, queue: Queue) -> bool:
        """RQ calls this to run a job; False if it failed."""
        began_s = time.perf_counter()
        succeeded = super().perform_job(job, queue)
        task = str(job.func_name).rpartition(".")[2]
        if (every_s := PERIODS_S.get(task)) is not None:
            self.meter.record.ran(task, every_s, time.perf_counter() - began_s, succeeded=succeeded)
        self.meter.publish_if_due()
        return succeeded

    def heartbeat(self, *args: Any, **kwargs: Any) -> None:
        """RQ calls this in each iteration of its loop, whether its Redis is there or not, and before a job.

        Raises StopRequested, which RQ's signal handler has raised before, if that was caught where it was raised: by
        `logging`, which catches all errors, while a line about the queue was written."""
        if self._shutdown_requested_date is not None and self.get_state() != WorkerStatus.BUSY:
            raise StopRequested
        touch(self.liveness_file)
        self.meter.publish_if_due()
        super().heartbeat(*args, **kwargs)

    def teardown(self) -> None:
        """RQ calls this at the end, to sign off; a Redis that stands still gets no longer than a connect does."""
        pool = self.connection.connection_pool
        pool.connection_kwargs["socket_timeout"] = CONNECT_TIMEOUT_S
        pool.reset()  # new connections have it
        super().teardown()  # type: ignore[no-untyped-call]

    def handle_exception(self, job: Job, *exc_info: Any) -> None:
        """RQ calls this after a job that failed; its own line names no next step.

        What the store refuses is no fault of this server, and a job runs each second: no traceback then."""
        error = exc_info[1]
        if isinstance(error, redis.RedisError | StoreUnavailable):
            refused.warning(
                f"job {job.func_name} failed: %s; the timetable runs it again, compare keys and rights with "
                "docs/redis.md if the store refuses it",
                error,
            )
            return
        log.error(
            "job %s failed: %s; the timetable runs it again, report it if it stays",
            job.id,
            error,
            exc_info=exc_info,
        )


def await_queue(options: Options) -> None:
    """Wait until its Redis answers: RQ's worker would end at once, and a pod that ends often is started late."""
    logged = False
    with _connection(options, socket_timeout=CONNECT_TIMEOUT_S) as connection:
        while True:
            touch(options.beat_file)
            try:
                connection.ping()
                if logged:
                    log.warning("the job queue can be reached again")
                return
            except (redis.ConnectionError, redis.TimeoutError) as error:
                if not logged:
                    log.warning(
                        "the job queue cannot be reached: %s; retries every %g s", error, QUEUE_WAIT_S
                    )
                logged = True
            time.sleep(QUEUE_WAIT_S)


def worker(options: Options) -> UpkeepWorker:
    """Return a worker for every queue of the timetable."""
    connection = _connection(options)
    queues = list(dict.fromkeys(job.queue_of(options.namespace) for job in JOBS))
    upkeep = UpkeepWorker(queues, connection=connection, serializer=JSONSerializer, worker_ttl=TTL_S)
    upkeep.log_job_description = False
    upkeep.liveness_file = options.beat_file
    upkeep.meter = JobMeter(options)
    if (tracer := tracer_of(options)) is not None:
        from worker.jobs.traced_jobs import perform_traced

        upkeep.perform_job = partial(perform_traced, tracer, upkeep.perform_job)  # type: ignore[method-assign]
    return upkeep


def _connection(options: Options, **settings: Any) -> redis.Redis:
    url = options.rq_redis_url or options.redis_url
    return connect_queue(url, socket_connect_timeout=CONNECT_TIMEOUT_S, **settings)


def _is_no_refusal(record: logging.LogRecord) -> bool:
    """Whether a line of RQ's has no traceback of what its Redis refused: `main` logs the cause in one line."""
    return not (record.exc_info and isinstance(record.exc_info[1], redis.RedisError))


def main() -> None:
    """Options come from the environment, as the supervisor hands them over."""
    options = configuration.load(os.environ)
    log_lines.to_standard_error(options)
    log_without_effect(configuration.warnings(os.environ))
    logging.raiseExceptions = (
        False  # RQ's handler of a signal raises where it is: in a line that is being written too
    )
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(0)
    )  # until RQ's own; a container's first process has none
    await_queue(options)
    upkeep = worker(options)
    upkeep.log.addFilter(RateLimitedFilter(REPEATED_EVERY_S))  # RQ logs each attempt to reach its Redis
    upkeep.log.addFilter(_is_no_refusal)
    try:
        upkeep.work(logging_level="WARNING")
    except StopRequested:  # a second one, while it signed off
        log.warning("asked twice, the job worker ends without signing off; RQ drops its entry by itself")
    except (redis.ConnectionError, redis.TimeoutError) as error:  # while it works, RQ waits for its Redis
        log.warning("the job worker ends without signing off: %s; RQ drops its entry by itself", error)
    except redis.RedisError as error:
        log.warning(
            "the job worker ends, since its queue refuses: %s; it is started again, see whether that Redis takes "
            "writes, and compare the rights of its user with docs/redis.md",
            error,
        )
    if options.traces:
        from traces.process import end

        end()
    sys.exit(0 if upkeep._shutdown_requested_date else 1)  # _stop_requested is set only if it was at work


if __name__ == "__main__":
    main()
