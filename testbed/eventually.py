"""Polling: repeat a check until it is true or a deadline is over."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
EVERY_S = 0.01
PATIENCE_S = 30.0
"""The default deadline, far more than a busy machine needs: only a failure takes as long."""


def eventually(look: Callable[[], T], within_s: float = PATIENCE_S) -> T:
    """Return the first true result of `look`; AssertionError with the last one when none comes in time.

    What `look` itself asserts counts as a false result."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            last: object = look()
            if last:
                return last  # type: ignore[return-value]
        except AssertionError as failure:
            last = failure
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s; at the end: {last!r}")
        time.sleep(EVERY_S)


async def eventually_async(look: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Do the same as `eventually` on an event loop; `look` may return an awaitable of its result."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while True:
        seen = look()
        if isinstance(seen, Awaitable):
            seen = await seen
        if seen:
            return
        assert loop.time() < deadline, f"not within {within_s} s"
        await asyncio.sleep(EVERY_S)


def stays(look: Callable[[], object], for_s: float, every_s: float = 0.05) -> None:
    """Assert that `look` is true all the time."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        assert look()
        time.sleep(every_s)
