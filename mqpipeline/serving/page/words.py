"""How the page says things: names, times, durations, shares."""

import re
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Final

import msgspec

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
NOTHING = "\N{EN DASH}"
SPACE = "\u202f"  # narrow, and lines do not break at it
WINDOWS = {"1h": "1 hour", "24h": "24 hours", "7d": "7 days", "30d": "30 days", "now": "now"}
ALERTS = {"14.4": "1 h and 5 min", "6": "6 h and 30 min", "1": "3 d and 6 h"}
"""Burn rates that alert, with the windows that have to be over them."""
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def name(text: object) -> str:
    """A name that others gave, on one line; markup in it is the template's to escape."""
    return UNPRINTABLE.sub("\ufffd", str(text))


def unit_name(unit: str) -> str:
    """`broker:c1:a` -> `c1:a`"""
    return name(unit.partition(":")[2])


def detail(text: str | None) -> str:
    """A JSON object read out, `{"addr": "h:1", "holder": {"id": 0}}` -> `addr h:1, holder (id 0)`; else the text."""
    try:
        value = msgspec.json.decode(text or "")
    except msgspec.DecodeError:
        value = None
    return name(_read_out(value) if isinstance(value, dict) else text or NOTHING)


def _read_out(members: dict[str, Any]) -> str:
    said = ((key, f"({_read_out(one)})" if isinstance(one, dict) else one) for key, one in members.items())
    return ", ".join(f"{key} {one}" for key, one in said if one is not None)


def share(value: float | None) -> str:
    """0.99954 -> `99.954 %`: never rounded up, so that only what is whole says 100."""
    if value is None:
        return NOTHING
    if value >= 1:
        return f"100{SPACE}%"
    digits = next((digits for digits in (2, 3, 4) if value < 1 - 10.0 ** -(digits + 1)), 5)
    step = Decimal(1).scaleb(-digits)
    return f"{(Decimal(repr(value)) * 100).quantize(step, ROUND_FLOOR)}{SPACE}%"


def objective(value: float) -> str:
    """0.999 -> `99.9 %`"""
    return f"{value * 100:.8g}{SPACE}%"


def number(value: float | None, digits: int = 0) -> str:
    """Thousands are parted."""
    return NOTHING if value is None else f"{value:,.{digits}f}".replace(",", SPACE)


def duration(ms: float | None) -> str:
    """In the two largest units that say something."""
    if ms is None:
        return NOTHING
    if ms < SECOND_MS:
        return f"{ms:.0f}{SPACE}ms"
    if ms < MINUTE_MS:
        return f"{ms / SECOND_MS:.1f}".removesuffix(".0") + f"{SPACE}s"
    units = (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", SECOND_MS))
    large = next(i for i, (_, size) in enumerate(units) if ms >= size)
    (unit, size), (below, part) = units[large : large + 2]
    whole, rest = divmod(round(ms / part), size // part)
    return f"{whole}{SPACE}{unit}" + (f" {rest}{SPACE}{below}" if rest else "")


def moment(ms: int | None) -> str:
    """UTC, to the second."""
    return NOTHING if ms is None else _utc(ms).strftime("%Y-%m-%d %H:%M:%S")


def day(ms: int) -> str:
    return f"{_utc(ms).day}{SPACE}{_utc(ms):%b}"


def clock(ms: int) -> str:
    return f"{_utc(ms):%H:%M}"


def window(text: str) -> str:
    return WINDOWS.get(text, text)


def plural(count: int, singular: str, many: str | None = None) -> str:
    """`1 broker`, `2 brokers`"""
    return f"{number(count)} {singular if count == 1 else many or singular + 's'}"


def _utc(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / SECOND_MS, UTC)
