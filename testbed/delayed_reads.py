"""XREAD replies that come late, in whichever process asks for them."""

import asyncio
import os
from functools import wraps
from typing import Any

import redis.asyncio

VARIABLE = "TEST_FOLLOWER_DELAY"


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
