"""Writes summaries of the event stream, by which requests for what is rare skip most of it (docs/events.md)."""

from typing import Final

from registry.drivers import AsyncDriver
from registry.events.summarizer import Summarizer
from registry.keys import Keys
from registry.task_times import SUMMARIZE
from worker.jobs.claimed_task import Task

__all__ = ["summaries"]

EVERY_S: Final = 10.0


def summaries(driver: AsyncDriver, keys: Keys) -> Task:
    """Return the task."""
    summarizer = Summarizer(keys)

    async def summarize() -> None:
        await driver.run(summarizer.run())

    return Task(SUMMARIZE, EVERY_S, "events are not summarized, and filters look at all of them", summarize)
