"""Lines that code under test logged, without those about what earlier tests left to the garbage collector."""

import logging

import pytest

COLLECTED = "coroutine ignored GeneratorExit"
"""What Python raises in a task that is collected while redis-py cleans up behind it; the driver logs it as a fault."""


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the messages of this project's loggers, in order."""
    return [record.getMessage() for record in caplog.records if not _of_earlier_tests(record)]


def _of_earlier_tests(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return record.name == "asyncio" or (isinstance(error, RuntimeError) and str(error) == COLLECTED)
