"""Tasks of a process that run as long as it does: whatever ends one is logged, and it begins again; their end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from time import perf_counter
from typing import Final

from worker.logs.rate_limited_log import RateLimitedLog

AGAIN_S: Final = 0.5
CANCEL_AGAIN_S: Final = 0.05
NEARLY: Final = 0.1
"""Of a period: timers are rounded, and may end before their time."""

log = RateLimitedLog(logging.getLogger(__name__))


async def pause(every_s: float) -> float:
    """Sleep to the next multiple of `every_s` of the loop's clock, or to the one behind it if that has nearly come;
    return how many seconds late this ended.

    Periodic tasks that sleep so wake the process together: a wake costs an idle one more than what it is for."""
    left_s = every_s - asyncio.get_running_loop().time() % every_s
    if left_s < NEARLY * every_s:
        left_s += every_s
    due_at = perf_counter() + left_s
    await asyncio.sleep(left_s)
    return max(perf_counter() - due_at, 0.0)


async def forever(what: str, run: Callable[[], Awaitable[None]]) -> None:
    """Await `run()` again and again until cancelled; none of its errors ends this. `what` names it in the log."""
    while True:
        error: Exception | None = None
        try:
            await run()
        except Exception as raised:
            error = raised
        log.warning(
            f"{what} ended by a fault of this server and begins again in %g s; report it",
            AGAIN_S,
            error=error,
        )
        await asyncio.sleep(AGAIN_S)


async def end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks until they have ended, whatever they end with.

    Once is not enough: before Python 3.12 `asyncio.wait_for` loses a cancellation that comes just when it is done,
    and redis-py calls it for every command it sends."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_S)
