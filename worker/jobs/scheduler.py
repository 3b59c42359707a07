"""`python -m worker.jobs.scheduler`: enqueues the timetable's jobs, pushes 905, and repairs tables.

Any number of these may run: a job's id names it, period and namespace, and RQ takes an id once. A scheduler that was
away goes on with the present period; what it missed the others have done, or it is needed no more.
"""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import redis
from redis.exceptions import RedisError
from rq import Queue
from rq.cron import CronScheduler
from rq.cron_scheduler_registry import cleanup, get_registry_key
from rq.exceptions import DuplicateJobError, SchedulerNotFound
from rq.serializers import JSONSerializer

from metrics.store_commands import StoreCommands
from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.events.observed import Claim
from registry.growth.limits import Limits
from registry.keys import Keys
from registry.options import load as configuration
from registry.options.catalogue import Options
from registry.repair.state import CLAIM_MS
from registry.store import connect as store
from worker.background import end, forever
from worker.jobs.claimed_task import ClaimedTask
from worker.jobs.event_counts import EventCounts
from worker.jobs.event_log import EventLog
from worker.jobs.event_summaries import summaries
from worker.jobs.eviction_watch import EvictionWatch
from worker.jobs.gone_members import GoneMembers
from worker.jobs.group_events import GroupEvents
from worker.jobs.liveness_file import touch
from worker.jobs.observing import StreamObserver
from worker.jobs.push_905 import Pusher
from worker.jobs.repair_walker import RepairWalker
from worker.jobs.route_checker import RouteChecker
from worker.jobs.scheduler_meter import SchedulerMeter
from worker.jobs.store_counts import counts
from worker.jobs.task_record import TaskRecord
from worker.jobs.timetable import JOBS, Periodic, timetable
from worker.logs import log_lines
from worker.logs.options_log import log_without_effect
from worker.logs.rate_limited_log import RateLimitedLog

RETRY_S = 0.5
REGISTER_EVERY_S = 10.0
KEPT_PERIODS = 3  # how long a done job's id stays taken: others may still be in its period
KEPT_MIN_S = 30
WAITING = 100  # more than can wait and live; ids of jobs that no worker took in time stay in their queue
HAND_OVER_WITHIN_S = 2.0
LOOK_WITHIN_S = 0.5

log = RateLimitedLog(logging.getLogger("worker.jobs.scheduler"))


class PeriodScheduler(CronScheduler):
    """RQ's scheduler by name and listing; periods decide what it enqueues when, and it outlives an outage."""

    def __init__(
        self,
        connection: redis.Redis,
        namespace: str,
        jobs: Sequence[Periodic] = JOBS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(connection, logging_level=logging.WARNING)
        self._namespace = namespace
        self._jobs = jobs
        self._clock = clock
        self._done: dict[str, int] = {}
        self._registered_until = 0.0
        self._failed = False

    def step(self, without_work: Collection[str] = ()) -> float:
        """Enqueue what is due in the present periods, these jobs seldom; return the seconds until the next begins."""
        try:
            self._register()
            seconds, micros = self.connection.time()
            now_s = seconds + micros / 1e6
            for job in self._jobs:
                period = job.period(now_s)
                if job.name not in without_work or job.name not in self._done or not job.rests(period):
                    self._enqueue(job, period)
        except RedisError as error:
            with suppress(RedisError):
                self._delete_wrong()
            log.warning("the job queue cannot be used: %s; retries every %g s", error, RETRY_S)
            self._registered_until, self._failed = 0.0, True
            return RETRY_S
        if self._failed:
            log.warning("the job queue can be used again")
            self._failed = False
        return min((job.period(now_s) + 1) * job.every_s - now_s for job in self._jobs)

    def waiting(self) -> dict[str, int]:
        """Return how many jobs wait in each queue, by its name without the namespace. Raises RedisError."""
        keys = {job.queue: self._queue(job).key for job in self._jobs}
        return {queue: int(self.connection.llen(key)) for queue, key in keys.items()}

    def unregister(self) -> None:
        """Take this scheduler off RQ's list."""
        try:
            self.register_death()
        except (RedisError, SchedulerNotFound) as error:
            log.warning("the scheduler ends without signing off: %s; RQ drops its entry by itself", error)

    def _queue(self, job: Periodic) -> Queue:
        return Queue(job.queue_of(self._namespace), connection=self.connection, serializer=JSONSerializer)

    def _delete_wrong(self) -> None:
        """Delete queues of another type than RQ's; what waited there is enqueued in its next period."""
        for key in {self._queue(job).key for job in self._jobs}:
            if self.connection.type(key) not in (b"list", b"none"):
                self.connection.delete(key)
                log.warning(
                    "%s was no list, and was deleted; find out what writes keys of the job queue", key
                )

    def _enqueue(self, job: Periodic, period: int) -> None:
        if self._done.get(job.name) == period:
            return
        queue = self._queue(job)
        kept_s = max(KEPT_PERIODS * job.every_s, KEPT_MIN_S)
        with suppress(DuplicateJobError):  # another scheduler was first
            named: Any = job.job  # a function or its name: RQ declares each, but not either
            queue.enqueue_call(
                named,
                job_id=job.id_of(self._namespace, period),
                unique=True,
                timeout=job.timeout_s,
                ttl=job.every_s,
                result_ttl=kept_s,
                failure_ttl=kept_s,
            )
            self.connection.ltrim(queue.key, -WAITING, -1)
        self._done[job.name] = period

    def _register(self) -> None:
        """Stay on RQ's list of schedulers, also after its Redis came back empty; drop those that were killed."""
        now = self._clock()
        if now >= self._registered_until:
            self.save()
            self.connection.zadd(get_registry_key(), {self.name: time.time()})
            cleanup(self.connection)
            self._registered_until = now + REGISTER_EVERY_S


async def without_work(driver: AsyncDriver, keys: Keys, jobs: Sequence[Periodic]) -> Collection[str]:
    """Return the names of jobs that have no work; none if the store does not say."""
    try:
        async with asyncio.timeout(LOOK_WITHIN_S):
            return [job.name for job in jobs if job.has_work and not await driver.run(job.has_work(keys))]
    except (RedisError, StoreUnavailable, TimeoutError):
        return ()


async def keep_timetable(
    scheduler: PeriodScheduler, look: Callable[[], Awaitable[Collection[str]]], liveness_file: str = ""
) -> None:
    """Step until cancelled, and touch the liveness file each time; `look` names the jobs that have no work."""
    while True:
        pause_s = await asyncio.to_thread(scheduler.step, await look())
        touch(liveness_file)
        await asyncio.sleep(pause_s)


async def serve(options: Options) -> None:
    """Run its tasks until SIGTERM or SIGINT."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    keys = Keys(options.namespace)
    commands = StoreCommands()
    driver = AsyncDriver(store.connect_async(options.redis_url, options.namespace), commands)
    counts_of_events, lines = EventCounts(), EventLog()
    connect = partial(store.connect_follower, options.redis_url, options.namespace)
    group_events = GroupEvents(connect, keys, Pusher(options, driver, keys).apply)
    queue = store.connect_queue(
        options.rq_redis_url or options.redis_url, socket_timeout=store.REPLY_TIMEOUT_S
    )
    jobs = timetable(options)
    scheduler = PeriodScheduler(queue, options.namespace, jobs)
    timekeeping = partial(
        keep_timetable, scheduler, partial(without_work, driver, keys, jobs), options.beat_file
    )
    walks = TaskRecord(keys, lambda plan: driver.start(plan, lambda *_: None))
    checker = RouteChecker(options, driver, keys)
    meter = SchedulerMeter(options.namespace, commands, counts_of_events, walks, checker, scheduler.waiting)
    walker = RepairWalker(options, driver, keys, record=walks, count=meter.count_repaired)
    claim, gone = Claim(walker.name, CLAIM_MS), GoneMembers(keys)
    observer = StreamObserver(
        driver, keys, claim, lines, counts_of_events, gone, publish=meter.publish, note=gone.note
    )
    claimed = [
        ClaimedTask(task, walks, lambda: walker.has_claim)
        for task in (*counts(driver, keys, Limits.of(options)), summaries(driver, keys), *checker.tasks)
    ]
    evictions = EvictionWatch(driver, allowed=options.allow_evicting_store)
    tasks = [
        loop.create_task(forever("the watch of evictions", evictions.run)),
        loop.create_task(forever("the timetable", timekeeping)),
        loop.create_task(forever("the pushes of 905", group_events.run)),
        loop.create_task(forever("the walk over the tables", walker.run)),
        loop.create_task(forever("the observer of events", observer.run)),
        *(loop.create_task(forever("a claimed task", task.run)) for task in claimed),
        loop.create_task(forever("the meter", meter.run)),
    ]
    await stop.wait()
    await end(tasks)
    await _hand_over(observer, walker)
    lines.close()
    scheduler.unregister()
    await driver.close()


async def _hand_over(observer: StreamObserver, walker: RepairWalker) -> None:
    """Have the next scheduler go on at once from where the log and the counts of this one end."""
    try:
        async with asyncio.timeout(HAND_OVER_WITHIN_S):
            await observer.close()
            await walker.release()
    except (RedisError, StoreUnavailable, TimeoutError) as error:
        log.warning(
            "the scheduler ends without releasing its claim: %s; another one logs and counts from where it stopped "
            "when the claim has ended, within %g s",
            error,
            CLAIM_MS / 1000,
        )


def main() -> None:
    """Options come from the environment, as the supervisor hands them over."""
    options = configuration.load(os.environ)
    log_lines.to_standard_error(options)
    log_without_effect(configuration.warnings(os.environ))
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
