"""Cancelling tasks until they have ended."""

import asyncio
from collections.abc import Iterable

RETRY_S = 0.05


async def end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks until they have ended, whatever they end with.

    Once is not enough: before Python 3.12 `asyncio.wait_for` loses a cancellation that comes just when it is done,
    and redis-py calls it for every command it sends."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=RETRY_S)
