"""Tasks of a process that run as long as it does: whatever ends one is logged, and it begins again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from worker.rate_limited_log import RateLimitedLog

AGAIN_S: Final = 0.5

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
