"""Times of forms: `<input type="datetime-local">` has no zone, and the console's is UTC."""

import re
import time
from typing import Final

from api.times import LAST_MS, format_time, parse_time

__all__ = ["as_asked", "as_typed", "now_ms", "or_none"]

WITHOUT_ZONE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?")
SECOND_MS: Final = 1000
MS_AND_ZONE: Final = len(".000Z")


def as_asked(text: str) -> str:
    """Return a time of a form as the API reads it; anything else as it is, so that the API says what is wrong."""
    return f"{text}Z" if WITHOUT_ZONE.fullmatch(text) else text


def as_typed(text: str, *, end: bool = False) -> str:
    """Return a time of a URL as a form has it, to the second before it, of an `end` after it; "" of what is none."""
    ms = or_none(text)
    if ms is None:
        return ""
    seconds = -(-ms // SECOND_MS) if end else ms // SECOND_MS
    return format_time(min(seconds * SECOND_MS, LAST_MS))[:-MS_AND_ZONE]


def or_none(text: str) -> int | None:
    """Return the Unix ms of a time of a URL, None of what is none."""
    try:
        return parse_time(as_asked(text))
    except (ValueError, OverflowError):
        return None


def now_ms() -> int:
    """Return the time by this machine's clock: for times that a page suggests."""
    return time.time_ns() // 1_000_000
