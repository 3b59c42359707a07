"""Lines that code under test logged, without asyncio's about what earlier tests left to the garbage collector."""

import pytest


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the messages of this project's loggers, in order."""
    return [record.getMessage() for record in caplog.records if record.name != "asyncio"]
