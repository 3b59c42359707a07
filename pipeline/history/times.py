"""Times as people and programs write them."""

from datetime import UTC, datetime

LAST_MS = 253_402_300_799_999
"""The end of the year 9999."""


def moment(text: str) -> int:
    """Unix ms of `1795255839125` (ms) or `2026-11-21T14:03:00Z` (RFC 3339, with an offset). Raises ValueError."""
    if text.isascii() and text.isdigit():
        found = int(text)
    else:
        told = _parsed(text)
        if told.tzinfo is None:
            raise ValueError(f"{text!r} has no offset: end it with Z for UTC")
        found = round(told.timestamp() * 1000)
    if not 0 <= found <= LAST_MS:
        raise ValueError(f"{text!r} is out of range")
    return found


def shown(ms: int) -> str:
    """RFC 3339 in UTC, to the ms."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither Unix ms nor a time like 2026-11-21T14:03:00Z") from None
