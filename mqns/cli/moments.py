"""Times as operators type and read them: durations before now, Unix ms, ISO 8601; local where no zone is said."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from mqns.errors import ConfigError

UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
DURATION: Final = re.compile(r"([0-9]{1,9})([smhd])")
MS: Final = re.compile(r"[0-9]{1,15}")


def parse_moment(option: str, text: str, now_ms: Callable[[], int]) -> int:
    """Return the Unix ms of `1h` (30m, 2d: so long before now), of `1795255839125` or of `2026-11-21T14:03:00`.

    Raises ConfigError, which names the option."""
    if match := DURATION.fullmatch(text):
        return max(0, now_ms() - int(match[1]) * UNITS_MS[match[2]])
    if MS.fullmatch(text):
        return int(text)
    try:
        return max(0, round(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        reason = "neither a duration like 30m, 1h or 2d, nor Unix ms, nor a time like 2026-11-21T14:03:00Z"
        raise ConfigError(f"{option}: {text!r} is {reason}") from None


def moment_text(ms: int, timespec: str = "milliseconds") -> str:
    """Return a time in ISO 8601 with the local offset; the number of one that no calendar has."""
    try:
        return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(timespec=timespec)
    except (ValueError, OverflowError, OSError):
        return str(ms)


def utc_text(ms: int, form: str) -> str:
    """Return a time in UTC as `strftime` has it; the number of one that no calendar has."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return str(ms)
