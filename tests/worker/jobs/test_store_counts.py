"""Counts of the store for metrics, in one of several processes."""

import asyncio
import logging
from contextlib import suppress

import msgspec
import pytest
import redis as redis_py
import redis.asyncio as redis_asyncio

from metrics import catalogue as metrics
from metrics.samples import Sample
from registry import task_times, topic_counts
from registry.doctor.findings import counted
from registry.drivers import AsyncDriver, run
from registry.errors import StoreUnavailable
from registry.growth.limits import DEFAULT_LIMITS
from registry.keys import Keys
from testbed.eventually import eventually_async
from tests.logged import logged
from tests.registry.namespace import Namespace
from worker.jobs import claimed_task
from worker.jobs.claimed_task import ClaimedTask, Task
from worker.jobs.store_counts import counts
from worker.jobs.task_record import TaskRecord
from worker.logs.rate_limited_log import RateLimitedLog

KEYS = Keys()
TOPICS, FINDINGS = "count_topics", "examine"


def task_of(name: str, driver: AsyncDriver) -> Task:
    return {task.name: task for task in counts(driver, KEYS, DEFAULT_LIMITS)}[name]


def run_once(name: str, store: redis_asyncio.Redis) -> dict[str, float]:
    """Return how many runs ended how."""

    async def count() -> dict[str, float]:
        driver = AsyncDriver(store)
        record = TaskRecord(KEYS, lambda plan: driver.start(plan, lambda *_: None))
        await ClaimedTask(task_of(name, driver), record, lambda: True).run_once()
        await driver.close()
        runs = (read for read in record.read() if isinstance(read, Sample))
        return {read.labels[1]: read.value for read in runs if read.labels[0] == name}

    return asyncio.run(count())


def test_it_stores_what_it_counted_and_records_its_run(
    redis: redis_py.Redis, async_redis: redis_asyncio.Redis
) -> None:
    Namespace(redis).register("b1", topics=("T", "U"))
    assert run_once(TOPICS, async_redis) == {"ok": 1, "failed": 0}
    counted_topics = run(topic_counts.read(KEYS), redis)
    assert counted_topics is not None
    assert counted_topics.clusters["c1"].topics == 2
    assert run(task_times.read(KEYS), redis)[TOPICS].every_s == 10
    assert {TOPICS, FINDINGS} <= set(metrics.TASK.values)


def test_findings_are_counted(redis: redis_py.Redis, async_redis: redis_asyncio.Redis) -> None:
    Namespace(redis).register("b1", number=1, topics=("T", "U"))
    assert run_once(FINDINGS, async_redis) == {"ok": 1, "failed": 0}
    found = run(counted(KEYS), redis)
    assert found["broker-without-master"] == 1
    assert set(found) == set(metrics.DOCTOR_FINDINGS.labels[0].values)


def test_what_keeps_it_from_counting_is_logged(
    redis: redis_py.Redis, async_redis: redis_asyncio.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis.set(KEYS.brokers, "no set")
    with caplog.at_level(logging.WARNING):
        assert run_once(TOPICS, async_redis) == {"ok": 0, "failed": 1}
    [line] = logged(caplog)
    assert line.startswith("topics are not counted for metrics: WRONGTYPE")


def test_the_one_that_walks_counts_again_and_again(
    redis: redis_py.Redis, async_redis: redis_asyncio.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claimed_task, "LOOK_EVERY_S", 0.02)
    ns = Namespace(redis)
    ns.register("b1", topics=("T", "U"))
    walks: list[bool] = []

    def topics() -> int:
        stored = run(topic_counts.read(KEYS), redis)
        return stored.clusters["c1"].topics if stored else 0

    async def count() -> None:
        driver = AsyncDriver(async_redis)
        record = TaskRecord(KEYS, lambda plan: driver.start(plan, lambda *_: None))
        often = msgspec.structs.replace(task_of(TOPICS, driver), every_s=0.05)
        task = asyncio.create_task(ClaimedTask(often, record, lambda: bool(walks)).run())
        await asyncio.sleep(0.2)
        assert topics() == 0
        walks.append(True)
        await eventually_async(lambda: topics() == 2)
        ns.register("b1", topics=("T", "U", "V"), version=2)
        await eventually_async(lambda: topics() == 3)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await driver.close()

    asyncio.run(count())


def test_a_task_that_ends_well_again_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(claimed_task, "log", RateLimitedLog(logging.getLogger(claimed_task.__name__)))
    outcomes: list[Exception | None] = [None, StoreUnavailable("away"), None, None]

    async def run_it() -> None:
        if (outcome := outcomes.pop(0)) is not None:
            raise outcome

    async def all_runs() -> None:
        task = ClaimedTask(
            Task("count_topics", 60, "topics are not counted", run_it),
            TaskRecord(KEYS, lambda plan: None),
            lambda: True,
        )
        while outcomes:
            await task.run_once()

    asyncio.run(all_runs())
    assert [line.partition(":")[0] for line in logged(caplog)] == [
        "topics are not counted",
        "job count_topics ends well again",
    ]
