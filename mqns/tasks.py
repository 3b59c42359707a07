"""Periodic jobs, work until a signal, and jobs for many items with bounded concurrency."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
log = logging.getLogger(__name__)


async def at_fixed_rate(job: Callable[[], Awaitable[None]], first_s: float, every_s: float) -> None:
    """Run a job after `first_s` and then every `every_s`, until cancelled.

    Runs do not overlap: those that become due while one is in progress are skipped. An exception is logged, and the
    next run is made as planned."""
    clock = asyncio.get_running_loop().time
    due = clock() + first_s
    while True:
        await asyncio.sleep(due - clock())
        try:
            await job()
        except Exception:  # the next run may succeed, and nothing else would start it
            log.exception("%r failed; it is run again in %g s", job, every_s)
        due += every_s * max(1, -((due - clock()) // every_s))


async def until_signal(work: Coroutine[None, None, None]) -> None:
    """Do work until it ends, or until SIGTERM or SIGINT, which cancel it."""
    working = asyncio.create_task(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, working.cancel)
    with suppress(asyncio.CancelledError):
        await working


async def run_concurrently(
    job: Callable[[T], Awaitable[R]],
    items: Sequence[T],
    at_most: int,
    done: Callable[[], None] = lambda: None,
) -> list[R]:
    """Return the results of a job for each item, in the order of the items; at most `at_most` jobs run at a time.

    `done` is called after each job. The first exception of a job cancels the others and is raised."""
    pending = iter(enumerate(items))
    results: dict[int, R] = {}

    async def work() -> None:
        for index, item in pending:
            results[index] = await job(item)
            done()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in items[:at_most]:
                group.create_task(work())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [results[index] for index in range(len(results))]
