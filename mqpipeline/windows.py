"""The windows that reports are made for, and the time of each state in them."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqpipeline.partitions import in_one

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ROLLING = {"1h": HOUR_MS, "24h": DAY_MS, "7d": 7 * DAY_MS, "30d": 30 * DAY_MS}
LATE_MS = 240_000
"""Twice the largest broker timeout: an expiry may be recorded that late."""


class Window(NamedTuple):
    """[from_ms, to_ms), ms UTC; `name` is that of its kind: `1h`, `day`."""

    name: str
    from_ms: int
    to_ms: int


def windows(as_of: int, since_ms: int) -> tuple[Window, ...]:
    """The rolling ones that end at `as_of`; the calendar days and months, in UTC, that lie between the two, the last
    cut off at `as_of`."""
    rolling = (Window(name, as_of - length, as_of) for name, length in ROLLING.items())
    return (*rolling, *_calendar("day", since_ms, as_of), *_calendar("month", since_ms, as_of))


def month_of(at_ms: int) -> int:
    """When the calendar month of that time began."""
    return _ms(_begin("month", at_ms))


def window_batches(of: Sequence[Window], final_ms: int, most: int) -> tuple[tuple[Window, ...], ...]:
    """The windows that ended by `final_ms`, month after month, and last all others: in `most` batches of about equally
    many months, or fewer."""
    closed: dict[int, list[Window]] = {}
    for window in of:
        if window.to_ms <= final_ms:
            closed.setdefault(month_of(window.from_ms), []).append(window)
    in_order = [closed[month] for month in sorted(closed)] + [
        [window for window in of if window.to_ms > final_ms]
    ]
    each = -(-len(in_order) // most)
    return tuple(tuple(chain(*in_order[i : i + each])) for i in range(0, len(in_order), each))


def span(of: Sequence[Window]) -> tuple[int, int]:
    """From the first begin to the last end."""
    return min(window.from_ms for window in of), max(window.to_ms for window in of)


def months(of: Sequence[Window]) -> tuple[int, int]:
    """The same of the calendar months among them; no time at all if there are none, as when one has just begun."""
    calendar = [window for window in of if window.name == "month"]
    return span(calendar) if calendar else (0, 0)


def cells(of: Sequence[Window]) -> tuple[Window, ...]:
    """Return the intervals between their edges, in order: each lies wholly in a window or outside it."""
    edges = sorted({edge for window in of for edge in (window.from_ms, window.to_ms)})
    return tuple(Window("cell", *edge) for edge in pairwise(edges))


def table(of: Sequence[Window]) -> pa.Table:
    """Their columns: `window`, `begin`, `end`."""
    columns = zip(("window", "begin", "end"), (pa.string(), pa.int64(), pa.int64()), strict=True)
    return pa.table(
        {name: pa.array([window[i] for window in of], kind) for i, (name, kind) in enumerate(columns)}
    )


def frame(spark: SparkSession, of: Sequence[Window]) -> DataFrame:
    """The same as a small table that needs no job."""
    return F.broadcast(in_one(spark, table(of)))


def time_in(intervals: DataFrame, of: Sequence[Window], unit: Sequence[str]) -> DataFrame:
    """How long each unit was in each state: its columns, `window`, `from_ms`, `to_ms`, `up_ms`, `down_ms`,
    `planned_ms`, `unknown_ms`, and `outages`, the DOWN intervals that overlap the window.

    A unit without an interval in a window has no row there."""
    cut = intervals.join(frame(intervals.sparkSession, of), F.expr("from_ms < end and begin < to_ms"))
    overlap = "least(to_ms, end) - greatest(from_ms, begin)"
    totals = cut.groupBy(*unit, "window", "begin", "end").agg(
        *(F.expr(f"sum(if(state = '{state}', {overlap}, 0)) as {state.lower()}_ms") for state in RECORDED),
        F.expr("count_if(state = 'DOWN') as outages"),
    )
    return totals.selectExpr(
        *unit,
        "window",
        "begin as from_ms",
        "end as to_ms",
        *(f"{state.lower()}_ms" for state in RECORDED),
        "end - begin - up_ms - down_ms - planned_ms as unknown_ms",
        "outages",
    )


RECORDED = ("UP", "DOWN", "PLANNED")
"""States that are recorded; UNKNOWN is what remains."""


def _calendar(name: str, since_ms: int, as_of: int) -> Iterator[Window]:
    begin = _begin(name, since_ms)
    while _ms(begin) < as_of:
        following = (
            begin + timedelta(days=1) if name == "day" else (begin + timedelta(days=31)).replace(day=1)
        )
        yield Window(name, _ms(begin), min(_ms(following), as_of))
        begin = following


def _begin(name: str, at_ms: int) -> datetime:
    day = datetime.fromtimestamp(at_ms // 1000, UTC).replace(hour=0, minute=0, second=0)
    return day.replace(day=1) if name == "month" else day


def _ms(at: datetime) -> int:
    return int(at.timestamp()) * 1000
