"""Lines of log: each test of the worker sees its own. Addresses where a broker is, or is not."""

import socket
import sys
from collections.abc import Iterator

import pytest

from worker.logs.rate_limited_log import RateLimitedLog


@pytest.fixture(autouse=True)
def no_line_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Because of the like of it in an earlier test."""
    logs = {
        id(value): value
        for name, module in [*sys.modules.items()]
        if name.startswith("worker.")
        for value in vars(module).values()
        if isinstance(value, RateLimitedLog)
    }
    for log in logs.values():
        monkeypatch.setattr(log._limit, "_next", {})
        monkeypatch.setattr(log._limit, "_left_out", {})


@pytest.fixture
def listening() -> Iterator[str]:
    """The address of a broker that is alive."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def refused() -> str:
    """An address where no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"
