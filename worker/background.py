"""Tasks of a process that run as long as it does: whatever ends one is logged, and it begins again; their end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from worker.logs.rate_limited_log import RateLimitedLog

AGAIN_S: Final = 0.5
CANCEL_AGAIN_S: Final = 0.05

log = RateLimitedLog(logging.getLogger(__name__))


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
