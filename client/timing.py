"""Work that comes again and again, and work on many things side by side."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
log = logging.getLogger(__name__)


async def at_fixed_rate(job: Callable[[], Awaitable[None]], first_s: float, every_s: float) -> None:
    """Run a job after `first_s` and then each `every_s` from there on, until cancelled.

    It never runs twice at once: what comes due meanwhile is left out. An error is logged and ends nothing, as with
    Java's scheduled tasks that catch all."""
    clock = asyncio.get_running_loop().time
    due = clock() + first_s
    while True:
        await asyncio.sleep(due - clock())
        try:
            await job()
        except Exception:  # whatever it is, the next turn may go well, and nobody else would start it
            log.exception("%r failed; it is run again in %g s", job, every_s)
        due += every_s * max(1, -((due - clock()) // every_s))


async def side_by_side(job: Callable[[T], Awaitable[None]], items: Iterable[T], at_most: int) -> None:
    """Run a job for each item, at most so many at once, and wait for all. The job deals with its own errors."""
    things = list(items)
    left = iter(things)

    async def work() -> None:
        for thing in left:
            await job(thing)

    async with asyncio.TaskGroup() as group:
        for _ in things[:at_most]:
            group.create_task(work())
