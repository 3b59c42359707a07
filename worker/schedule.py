"""The timetable: what runs how often."""

from collections.abc import Callable

import msgspec

from worker import jobs

QUEUE = "upkeep"


class Periodic(msgspec.Struct, frozen=True):
    """A job that runs once in each slot of `every_s` seconds, counted from the epoch by the queue's Redis clock."""

    job: Callable[[], object]
    every_s: int
    queue: str = QUEUE

    @property
    def name(self) -> str:
        return self.job.__name__

    def slot(self, now_s: float) -> int:
        """The number of the slot that is now."""
        return int(now_s // self.every_s)

    def queue_of(self, namespace: str) -> str:
        """Its queue: one Redis may serve several name servers, and a job is of the one whose worker takes it."""
        return f"{self.queue}:{namespace}"

    def id_of(self, namespace: str, slot: int) -> str:
        """RQ has one space of ids for all queues, and no dots in them."""
        return f"{self.name}-{slot}-{namespace.replace('_', '__').replace('.', '_-')}"


JOBS = (
    Periodic(jobs.expire_brokers, every_s=1),
    Periodic(jobs.settle_owed, every_s=10),
    Periodic(jobs.trim_events, every_s=10),
    Periodic(jobs.restate_tables, every_s=2),
)
