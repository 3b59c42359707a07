"""Counts of the store that take long, for metrics: topics and queues, and the findings of the name server."""

from typing import Final

from registry import topic_counts
from registry.doctor import findings
from registry.drivers import AsyncDriver
from registry.growth.limits import Limits
from registry.keys import Keys
from registry.task_times import COUNT
from registry.topic_counts import Counted
from worker.jobs.claimed_task import Task

__all__ = ["counts"]

COUNT_EVERY_S: Final = 10.0
"""Nothing is read again while nothing has changed."""
EVERY_S: Final = 30.0


def counts(driver: AsyncDriver, keys: Keys, limits: Limits) -> tuple[Task, ...]:
    """Return the tasks; the second goes by what the first counted."""
    before: Counted | None = None

    async def count_topics() -> None:
        nonlocal before
        before = await driver.run(topic_counts.count(keys, before))
        await driver.run(topic_counts.store(keys, before.counts))

    async def examine() -> None:
        await driver.run(findings.count(keys, limits))

    return (
        Task(COUNT, COUNT_EVERY_S, "topics are not counted for metrics", count_topics),
        Task("examine", EVERY_S, "findings are not counted for metrics", examine),
    )
