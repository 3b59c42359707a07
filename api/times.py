"""Times as people and programs write them; mqpipeline/times.py reads the same forms."""

from datetime import UTC, datetime

LAST_MS = 253_402_300_799_999
"""The end of the year 9999."""


def parse_time(text: str) -> int:
    """Return the Unix ms of `1795255839125` (ms) or `2026-11-21T14:03:00Z` (RFC 3339, with an offset).

    Raises ValueError."""
    ms = int(text) if text.isascii() and text.isdigit() else _parse_rfc3339(text)
    if not 0 <= ms <= LAST_MS:
        raise ValueError(f"{text!r} is out of range")
    return ms


def format_time(ms: int) -> str:
    """Return RFC 3339 in UTC, to the ms."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _parse_rfc3339(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither Unix ms nor a time like 2026-11-21T14:03:00Z") from None
    if time.tzinfo is None:
        raise ValueError(f"{text!r} has no offset: end it with Z for UTC")
    return round(time.timestamp() * 1000)
