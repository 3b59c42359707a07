"""A mode of the suite in which every follower of the event stream lags: `--follower-delay SECONDS`.

Workers then see changes of other workers late, as on a busy machine; a test that does not wait for them fails always
instead of now and then. A pytest plugin; it reaches the processes that tests start over PYTHONPATH."""

import asyncio
import os
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

VARIABLE = "TEST_FOLLOWER_DELAY"
STARTUP = Path(__file__).parent / "delayed"


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--follower-delay`."""
    parser.addoption(
        "--follower-delay", metavar="SECONDS", help="delay what workers read from the event stream"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Delay this process and those that it starts."""
    if delay_s := config.getoption("--follower-delay"):
        os.environ[VARIABLE] = delay_s
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(STARTUP), os.environ.get("PYTHONPATH"))))
        delay_reads()
