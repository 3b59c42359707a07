"""What a decoder returns, or refuses as it documents."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def read(decode: Callable[[], T], *errors: type[Exception]) -> T | None:
    """What it reads, None for what it refuses in one line."""
    reason = "one line"
    try:
        return decode()
    except errors as error:
        reason = str(error)
    assert is_one_line(reason)
    return None


def is_one_line(text: str) -> bool:
    return len(text.splitlines()) == 1
