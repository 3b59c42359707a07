"""Waiting for what comes a little later, by looking again and again until a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
EVERY_S = 0.01


def eventually(look: Callable[[], T], within_s: float = 1.0) -> T:
    """The first true result of `look`; AssertionError with the last one when none comes in time.

    What `look` itself asserts counts as a false result.
    """
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


def stays(look: Callable[[], object], for_s: float, every_s: float = 0.05) -> None:
    """See that `look` is true all the time."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        assert look()
        time.sleep(every_s)
