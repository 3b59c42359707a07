"""Where the shapes of the figures lie. Lengths are in units of a drawing that is WIDTH wide."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final

import msgspec

from mqpipeline.serving.page import words
from mqpipeline.serving.page.words import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from mqpipeline.serving.results import Row

WIDTH: Final = 720
LEAST: Final = 3
"""A state as short as it may be is still to be seen."""
STEPS_MS = (
    *(n * MINUTE_MS for n in (1, 5, 15, 30)),
    *(n * HOUR_MS for n in (1, 3, 6, 12)),
    *(n * DAY_MS for n in (1, 2, 7, 14)),
)
TICKS_MOST = 9
DURATIONS_MS = (
    100,
    SECOND_MS,
    10 * SECOND_MS,
    MINUTE_MS,
    10 * MINUTE_MS,
    HOUR_MS,
    6 * HOUR_MS,
    DAY_MS,
    7 * DAY_MS,
)
HEIGHT: Final = 20
"""Height of the bars of a cause, whose busiest hour is as high."""
CAUSES_MOST = 10
OTHERS = "others"
LEVELS = (1.0, 0.9999, 0.999, 0.99, 0.9)
"""The heat map's: at least so much; 5 is less than the last."""


class Tick(msgspec.Struct, frozen=True):
    at: float
    label: str


class StateInterval(msgspec.Struct, frozen=True):
    """A state for some time."""

    x: float
    width: float
    state: str
    title: str


class Strip(msgspec.Struct, frozen=True):
    cluster: str
    broker: str
    intervals: tuple[StateInterval, ...]
    down_ms: int


class Strips(msgspec.Struct, frozen=True):
    """Strips of brokers over the same time."""

    from_ms: int
    to_ms: int
    lines: tuple[Strip, ...]
    ticks: tuple[Tick, ...]


class Range(msgspec.Struct, frozen=True):
    """Quantiles on a scale of durations: name, value, place."""

    quantiles: tuple[tuple[str, float, float], ...]


class Bar(msgspec.Struct, frozen=True):
    """An hour's."""

    x: float
    height: float
    title: str


class Cause(msgspec.Struct, frozen=True):
    """`top` are the operations of its busiest hour."""

    name: str
    acts: int
    top: int
    bars: tuple[Bar, ...]


class Causes(msgspec.Struct, frozen=True):
    """Operations by hour over the same time, of each cause on a scale of its own."""

    lines: tuple[Cause, ...]
    bar_width: float
    ticks: tuple[Tick, ...]


class Cell(msgspec.Struct, frozen=True):
    """Availability of a day; `level` counts LEVELS from the best, None without any."""

    level: int | None
    title: str


class Heat(msgspec.Struct, frozen=True):
    days: tuple[int, ...]
    lines: tuple[tuple[str, tuple[Cell, ...]], ...]


def strips(rows: Sequence[Row], as_of_ms: int) -> Strips | None:
    """States of brokers, in the order of the rows; begins where anything is known."""
    known = [row["from_ms"] for row in rows if row["state"] != "UNKNOWN"]
    if not known:
        return None
    start = min(known)
    scale = WIDTH / max(1, as_of_ms - start)
    lines = []
    for (cluster, broker), group in groupby(rows, key=lambda row: (row["cluster"], row["broker"])):
        states = [row for row in group if row["to_ms"] > start]
        drawn = sorted(states, key=lambda row: row["state"] != "UP")  # what is widened lies on top
        intervals = tuple(_interval(row, start, scale) for row in drawn)
        lines.append(Strip(cluster, broker, intervals, states[0]["down_ms"] if states else 0))
    return Strips(start, as_of_ms, tuple(lines), time_ticks(start, as_of_ms))


def _interval(row: Row, start: int, scale: float) -> StateInterval:
    from_ms, to_ms = max(row["from_ms"], start), row["to_ms"]
    width = (to_ms - from_ms) * scale
    if row["state"] != "UP":
        width = max(width, LEAST)
    x = min((from_ms - start) * scale, WIDTH - width)
    title = f"{row['state']} {words.moment(from_ms)}, {words.duration(to_ms - from_ms)}"
    return StateInterval(round(x, 2), round(width, 2), row["state"], title)


def time_ticks(from_ms: int, to_ms: int) -> tuple[Tick, ...]:
    """At round times of UTC; midnights show the day."""
    span = max(1, to_ms - from_ms)
    step = next((step for step in STEPS_MS if span / step <= TICKS_MOST), span)
    first = -(-from_ms // step) * step
    return tuple(
        Tick(round((ms - from_ms) / span * WIDTH, 2), words.clock(ms) if ms % DAY_MS else words.day(ms))
        for ms in range(first, to_ms + 1, step)
    )


def duration_ticks(longest_ms: float) -> tuple[Tick, ...]:
    """Return the ticks of a logarithmic scale that reaches as far."""
    reach = _reach(longest_ms)
    return tuple(Tick(_on_scale(ms, reach), words.duration(ms)) for ms in DURATIONS_MS if ms <= reach)


def duration_range(quantiles: Sequence[tuple[str, float | None]], longest_ms: float) -> Range:
    """Named quantiles on that scale; those that are null are left out."""
    reach = _reach(longest_ms)
    return Range(tuple((label, ms, _on_scale(ms, reach)) for label, ms in quantiles if ms is not None))


def _reach(longest_ms: float) -> float:
    return next((ms for ms in DURATIONS_MS[2:] if ms >= longest_ms), longest_ms)


def _on_scale(ms: float, reach: float) -> float:
    least = DURATIONS_MS[0]
    return round(WIDTH * math.log(max(ms, least) / least) / math.log(reach / least), 2)


def causes(rows: Sequence[Row]) -> Causes | None:
    """Operations by hour, the causes with most of them apart."""
    if not rows:
        return None
    totals = Counter[str]()
    for row in rows:
        totals[row["cause"]] += row["acts"]
    by_acts = sorted(totals, key=lambda cause: (-totals[cause], cause))
    apart = by_acts if len(by_acts) <= CAUSES_MOST else by_acts[: CAUSES_MOST - 1]
    hours: dict[str, Counter[int]] = {cause: Counter() for cause in (*apart, OTHERS)}
    for row in rows:
        hours[row["cause"] if row["cause"] in apart else OTHERS][row["from_ms"]] += row["acts"]
    first, end = min(row["from_ms"] for row in rows), max(row["from_ms"] for row in rows) + HOUR_MS
    scale = WIDTH / (end - first)
    lines = tuple(_cause(cause, counts, first, scale) for cause, counts in hours.items() if counts)
    return Causes(lines, round(HOUR_MS * scale, 2), time_ticks(first, end))


def _cause(name: str, hours: Counter[int], first: int, scale: float) -> Cause:
    top = max(1, *hours.values())
    bars = tuple(
        Bar(
            round((hour - first) * scale, 2),
            round(max(1.0, HEIGHT * acts / top), 2),
            f"{words.moment(hour)[:16]}: {acts}",
        )
        for hour, acts in sorted(hours.items())
    )
    return Cause(name, hours.total(), top, bars)


def heat(rows: Sequence[Row], units: Sequence[str]) -> Heat | None:
    """Availability by day of these units, as far as the rows have them."""
    days = tuple(sorted({row["from_ms"] for row in rows}))
    by_day = {(row["unit"], row["from_ms"]): row["availability"] for row in rows}
    listed = {row["unit"] for row in rows}
    lines = tuple(
        (unit, tuple(_cell(by_day.get((unit, day_ms)), day_ms) for day_ms in days))
        for unit in units
        if unit in listed
    )
    return Heat(days, lines) if lines else None


def _cell(availability: float | None, day_ms: int) -> Cell:
    date = words.moment(day_ms)[:10]
    if availability is None:
        return Cell(None, f"{date}: nothing known")
    level = next((i for i, least in enumerate(LEVELS) if availability >= least), len(LEVELS))
    return Cell(level, f"{date}: {words.share(availability)}")
