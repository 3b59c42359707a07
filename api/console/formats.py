"""Times, numbers and parameters as pages write them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from registry.members import is_ending
from rocketmq_remoting.permission import PERM_READ, PERM_WRITE

__all__ = ["ending", "moment", "number", "permission", "query", "span"]

UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
NARROW_NO_BREAK_SPACE: Final = "\u202f"
DASH: Final = "\u2013"


def moment(ms: int | None) -> str:
    """Return a time in Unix ms as `2026-11-30 08:15:04 UTC`, a dash for none."""
    if ms is None:
        return DASH
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def span(ms: int | None) -> str:
    """Return a duration by its two largest units: `2 h 5 min`; below a second in ms."""
    if ms is None:
        return DASH
    if abs(ms) < 1000:
        return f"{ms} ms"
    rest = abs(ms)
    parts: list[str] = []
    for unit, size in UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count} {unit}")
        if len(parts) == 2:
            break
    return ("-" if ms < 0 else "") + " ".join(part for part in parts if not part.startswith("0 "))


def ending(lease: Mapping[str, Any]) -> bool:
    """Return whether more than half of a living lease, as the API answers it, passed without a heartbeat."""
    return lease["state"] == "living" and is_ending(lease["remainingMillis"], lease["timeoutMillis"])


def number(value: float | int) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}".replace(",", NARROW_NO_BREAK_SPACE)


def permission(perm: int) -> str:
    """Return what clients may do with a topic's queues on a broker: `read and write`, `read only`, …"""
    return {
        PERM_READ | PERM_WRITE: "read and write",
        PERM_READ: "read only",
        PERM_WRITE: "write only",
    }.get(perm & (PERM_READ | PERM_WRITE), "neither read nor write")


def query(given: Mapping[str, Any]) -> str:
    """Return `?name=value…`, "" without any; what is None or "" is left out."""
    present = {name: value for name, value in given.items() if value not in (None, "")}
    return f"?{urlencode(present)}" if present else ""
