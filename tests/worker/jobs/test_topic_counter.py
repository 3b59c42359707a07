"""The process that counts topics for metrics: one of several."""

import asyncio
import logging
from contextlib import suppress

import pytest
import redis as redis_py
import redis.asyncio as redis_asyncio

from metrics import catalogue as metrics
from metrics.samples import Sample
from registry import task_times, topic_counts
from registry.drivers import AsyncDriver, run
from registry.keys import Keys
from testbed.eventually import eventually_async
from tests.logged import logged
from tests.registry.namespace import Namespace
from worker.jobs import topic_counter
from worker.jobs.task_record import TaskRecord
from worker.jobs.topic_counter import TopicCounter

KEYS = Keys()


def count_once(store: redis_asyncio.Redis) -> dict[str, float]:
    """Return how many runs ended how."""

    async def count() -> dict[str, float]:
        driver = AsyncDriver(store)
        record = TaskRecord(KEYS, lambda plan: driver.start(plan, lambda *_: None))
        await TopicCounter(driver, KEYS, record, lambda: True).count()
        await driver.close()
        runs = (read for read in record.read() if isinstance(read, Sample))
        return {read.labels[1]: read.value for read in runs if read.labels[0] == topic_counter.TASK}

    return asyncio.run(count())


def test_it_stores_what_it_counted_and_records_its_run(
    redis: redis_py.Redis, async_redis: redis_asyncio.Redis
) -> None:
    Namespace(redis).register("b1", topics=("T", "U"))
    assert count_once(async_redis) == {"ok": 1, "failed": 0}
    counts = run(topic_counts.read(KEYS), redis)
    assert counts is not None
    assert counts.clusters["c1"].topics == 2
    assert run(task_times.read(KEYS), redis)[topic_counter.TASK].every_s == 30
    assert topic_counter.TASK in metrics.TASK.values


def test_what_keeps_it_from_counting_is_logged(
    redis: redis_py.Redis, async_redis: redis_asyncio.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis.set(KEYS.brokers, "no set")
    with caplog.at_level(logging.WARNING):
        assert count_once(async_redis) == {"ok": 0, "failed": 1}
    [line] = logged(caplog)
    assert line.startswith("topics are not counted for metrics: WRONGTYPE")


def test_the_one_that_walks_counts_again_and_again(
    redis: redis_py.Redis, async_redis: redis_asyncio.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_counter, "EVERY_S", 0.05)
    monkeypatch.setattr(topic_counter, "LOOK_EVERY_S", 0.02)
    ns = Namespace(redis)
    ns.register("b1", topics=("T", "U"))
    walks: list[bool] = []

    def topics() -> int:
        counts = run(topic_counts.read(KEYS), redis)
        return counts.clusters["c1"].topics if counts else 0

    async def count() -> None:
        driver = AsyncDriver(async_redis)
        record = TaskRecord(KEYS, lambda plan: driver.start(plan, lambda *_: None))
        task = asyncio.create_task(TopicCounter(driver, KEYS, record, lambda: bool(walks)).run())
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
