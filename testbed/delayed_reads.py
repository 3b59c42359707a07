"""XREAD replies that come late, in whichever process asks for them."""

import asyncio
import os
from functools import wraps
from pathlib import Path
from typing import Any, Final

import redis.asyncio
from redis.exceptions import ResponseError

from registry.store import pipeline
from registry.store.connect import REPLY_TIMEOUT_S

VARIABLE: Final = "TEST_FOLLOWER_DELAY"
STARTUP: Final = Path(__file__).parent / "delayed"
"""A folder for PYTHONPATH, from which Python runs `delay_reads` as it starts."""


def inherited() -> dict[str, str]:
    """Return what a process with an environment of its own needs to lag as this one does; nothing if this does not."""
    return {VARIABLE: os.environ[VARIABLE], "PYTHONPATH": str(STARTUP)} if VARIABLE in os.environ else {}


def delay_reads() -> None:
    """Delay what `read_stream`, by which all follow, gets in this process by the seconds of the variable."""
    delay_s = float(os.environ[VARIABLE])
    execute = pipeline.execute
    if hasattr(execute, "__wrapped__"):
        return  # a process of pytest -n, in which this has run as it started

    @wraps(execute)
    async def delayed(
        store: redis.asyncio.Redis, commands: pipeline.Commands, within_s: float = REPLY_TIMEOUT_S
    ) -> list[Any]:
        replies = await execute(store, commands, within_s)
        if commands[0][0] == "XREAD" and replies[0] and not isinstance(replies[0], ResponseError):
            await asyncio.sleep(delay_s)
        return replies

    pipeline.execute = delayed
