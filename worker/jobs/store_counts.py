"""Counts of the store that take long, for metrics: topics and queues, and the findings of the name server."""

from typing import Final

from registry import topic_counts
from registry.doctor import findings
from registry.growth.limits import Limits
from registry.keys import Keys
from registry.plans import Plan
from registry.task_times import COUNT
from worker.jobs.claimed_task import Task

__all__ = ["counts"]

EVERY_S: Final = 30.0


def counts(keys: Keys, limits: Limits) -> tuple[Task, ...]:
    """Return the tasks; the second goes by what the first counted."""

    def count_topics() -> Plan[None]:
        yield from topic_counts.store(keys, (yield from topic_counts.count(keys)))

    return (
        Task(COUNT, EVERY_S, "topics are not counted for metrics", count_topics),
        Task(
            "examine", EVERY_S, "findings are not counted for metrics", lambda: findings.count(keys, limits)
        ),
    )
