"""The task that summarizes the event stream, as a scheduler runs it."""

import asyncio
from typing import Any

import pytest
import redis as redis_py
import redis.asyncio as redis_asyncio

from metrics import catalogue as metrics
from registry import task_times
from registry.drivers import AsyncDriver, run
from registry.events import summarizer
from registry.events.summaries import summary_or_none
from registry.keys import Keys
from tests.registry.namespace import Namespace
from worker.jobs.claimed_task import ClaimedTask
from worker.jobs.event_summaries import summaries
from worker.jobs.task_record import TaskRecord

KEYS = Keys()


def test_it_summarizes_what_name_servers_record(
    redis: redis_py.Redis, async_redis: redis_asyncio.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summarizer, "BLOCK_ENTRIES", 2)
    Namespace(redis).register("b1", topics=("T", "U"))

    async def summarize() -> None:
        driver = AsyncDriver(async_redis)
        record = TaskRecord(KEYS, lambda plan: driver.start(plan, lambda *_: None))
        await ClaimedTask(summaries(driver, KEYS), record, lambda: True).run_once()
        await driver.close()

    asyncio.run(summarize())
    entries: Any = redis.xrange(KEYS.event_summaries)
    [summary] = map(summary_or_none, entries)
    assert summary is not None
    assert summary.inc == redis.hget(KEYS.events_meta, "inc")
    assert run(task_times.read(KEYS), redis)[task_times.SUMMARIZE].every_s == 10
    assert task_times.SUMMARIZE in metrics.TASK.values
