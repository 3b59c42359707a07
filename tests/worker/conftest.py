"""Lines of log: each test of the worker sees its own."""

import sys

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
