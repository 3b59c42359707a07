"""XREAD replies that come late, in whichever process asks for them."""

import asyncio
import os
from functools import wraps
from pathlib import Path
from typing import Any, Final

import redis.asyncio

VARIABLE: Final = "TEST_FOLLOWER_DELAY"
STARTUP: Final = Path(__file__).parent / "delayed"
"""A folder for PYTHONPATH, from which Python runs `delay_reads` as it starts."""


def inherited() -> dict[str, str]:
    """Return what a process with an environment of its own needs to lag as this one does; nothing if this does not."""
    return {VARIABLE: os.environ[VARIABLE], "PYTHONPATH": str(STARTUP)} if VARIABLE in os.environ else {}


def delay_reads() -> None:
    """Delay XREAD replies of asyncio clients of this process by the seconds of the variable."""
    delay_s = float(os.environ[VARIABLE])
    client: Any = redis.asyncio.Redis
    read = client.xread
    if hasattr(read, "__wrapped__"):
        return  # a process of pytest -n, in which this has run as it started

    @wraps(read)
    async def delayed(*args: Any, **kwargs: Any) -> Any:
        reply = await read(*args, **kwargs)
        if reply:
            await asyncio.sleep(delay_s)
        return reply

    client.xread = delayed
