from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from mqpipeline.windows import DAY_MS, HOUR_MS, Window, cells, months, span, time_in, window_batches, windows
from tests.mqpipeline.rows import as_frame, rows_of


def ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type, misc]


AS_OF = ms(2026, 3, 2, 6)


def test_rolling() -> None:
    rolling = [window for window in windows(AS_OF, AS_OF - 1) if window.name not in ("day", "month")]
    assert rolling == [
        Window("1h", AS_OF - HOUR_MS, AS_OF),
        Window("24h", AS_OF - DAY_MS, AS_OF),
        Window("7d", AS_OF - 7 * DAY_MS, AS_OF),
        Window("30d", AS_OF - 30 * DAY_MS, AS_OF),
    ]


def test_days() -> None:
    days = [window for window in windows(AS_OF, ms(2026, 2, 27, 23, 59, 59)) if window.name == "day"]
    assert days == [
        Window("day", ms(2026, 2, 27), ms(2026, 2, 28)),
        Window("day", ms(2026, 2, 28), ms(2026, 3, 1)),
        Window("day", ms(2026, 3, 1), ms(2026, 3, 2)),
        Window("day", ms(2026, 3, 2), AS_OF),
    ]


def test_months() -> None:
    found = [window for window in windows(AS_OF, ms(2025, 12, 31, 12)) if window.name == "month"]
    assert found == [
        Window("month", ms(2025, 12, 1), ms(2026, 1, 1)),
        Window("month", ms(2026, 1, 1), ms(2026, 2, 1)),
        Window("month", ms(2026, 2, 1), ms(2026, 3, 1)),
        Window("month", ms(2026, 3, 1), AS_OF),
    ]


@pytest.mark.parametrize("name", ["day", "month"])
def test_none_begins_at_as_of(name: str) -> None:
    at = ms(2026, 3, 1)
    assert [window.to_ms for window in windows(at, at - 1) if window.name == name] == [at]


def test_of_months_the_calendar_tells() -> None:
    of = windows(AS_OF, ms(2026, 2, 3))
    assert months(of) == (ms(2026, 2, 1), AS_OF)
    assert months([window for window in of if window.name != "month"]) == (0, 0)


def test_batches_are_months_and_what_is_not_over() -> None:
    of = windows(AS_OF, ms(2025, 12, 31, 12))
    over, begun = ms(2026, 3, 1), [window for window in of if window.to_ms > ms(2026, 3, 1)]
    by_month = window_batches(of, over, 9)
    assert [span(batch) for batch in by_month[:3]] == [
        (ms(2025, 12, 1), ms(2026, 1, 1)),
        (ms(2026, 1, 1), ms(2026, 2, 1)),
        (ms(2026, 2, 1), ms(2026, 3, 1)),
    ]
    assert list(by_month[3]) == begun
    assert [len(window_batches(of, over, most)) for most in (1, 2, 3, 4)] == [1, 2, 2, 4]
    for most in (1, 2, 3, 4):
        assert sorted(window for batch in window_batches(of, over, most) for window in batch) == sorted(of)


def test_span_and_cells() -> None:
    of = [Window("a", 0, 10), Window("b", 5, 20), Window("c", 10, 20), Window("d", 30, 40)]
    assert span(of) == (0, 40)
    assert [cell[1:] for cell in cells(of)] == [(0, 5), (5, 10), (10, 20), (20, 30), (30, 40)]


def test_time_in(spark: SparkSession) -> None:
    """Outages count in each window that they overlap; what is not recorded is UNKNOWN; nothing recorded, no row."""
    rows = [
        ("a", "UP", 0, 10),
        ("a", "DOWN", 10, 30),
        ("a", "PLANNED", 30, 40),
        ("a", "UNKNOWN", 40, 50),
        ("a", "DOWN", 60, 61),
        ("b", "UNKNOWN", 0, 10),
    ]
    intervals = as_frame(spark, rows, "unit string, state string, from_ms bigint, to_ms bigint")
    of = [
        Window("w", 0, 100),
        Window("w", 20, 25),
        Window("x", 5, 10),
        Window("x", 30, 45),
        Window("x", 70, 80),
    ]
    found = time_in(intervals, of, ["unit"])
    columns = (
        "unit",
        "window",
        "from_ms",
        "to_ms",
        "up_ms",
        "down_ms",
        "planned_ms",
        "unknown_ms",
        "outages",
    )
    assert rows_of(found, *columns) == {
        ("a", "w", 0, 100, 10, 21, 10, 59, 2),
        ("a", "w", 20, 25, 0, 5, 0, 0, 1),
        ("a", "x", 5, 10, 5, 0, 0, 0, 0),
        ("a", "x", 30, 45, 0, 0, 10, 5, 0),
        ("b", "w", 0, 100, 0, 0, 0, 100, 0),
        ("b", "x", 5, 10, 0, 0, 0, 5, 0),
    }
