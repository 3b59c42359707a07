"""Where the shapes of the figures lie."""

from typing import Any

import pytest

from mqpipeline.reports.catalogue import AVAILABILITY
from mqpipeline.serving.page import figures
from mqpipeline.serving.page.figures import DURATIONS_MS, HEIGHT, LEAST, OTHERS, WIDTH, Tick
from mqpipeline.serving.page.words import DAY_MS, HOUR_MS, MINUTE_MS
from tests.mqpipeline.serving.example import AS_OF, TABLES, W0, churn_hour, row, state


def test_strips_begin_where_something_is_known() -> None:
    strips = figures.strips([state("a", "UNKNOWN", -9000, -900), *TABLES["broker_states"]], AS_OF)
    assert strips is not None
    assert (strips.from_ms, strips.to_ms) == (W0 - 900_000, AS_OF)
    assert [(line.broker, line.down_ms) for line in strips.lines] == [
        ("a", 540_000),
        ("c", 300_000),
        ("b", 0),
    ]
    first = strips.lines[0].intervals
    assert [interval.state for interval in first] == ["UP", "UP", "UP", "DOWN", "DOWN"]
    assert (first[0].x, first[0].width) == (0, 240)
    assert first[2].x + first[2].width == pytest.approx(WIDTH)
    assert first[3].title == "DOWN 2026-01-01 00:10:00, 1\u202fmin"


def test_what_is_short_is_still_seen_and_stays_within() -> None:
    rows = [state("a", "UP", 0, 3599), state("a", "DOWN", 3599, 3600)]
    found = figures.strips(rows, AS_OF)
    assert found is not None
    down = found.lines[0].intervals[1]
    assert (down.width, down.x) == (LEAST, WIDTH - LEAST)


@pytest.mark.parametrize("rows", [[], [state("a", "UNKNOWN", 0, 3600)]])
def test_no_strips_of_nothing(rows: list[Any]) -> None:
    assert figures.strips(rows, AS_OF) is None


@pytest.mark.parametrize(
    ("span", "labels"),
    [
        (4 * MINUTE_MS, ["00:00", "00:01", "00:02", "00:03", "00:04"]),
        (HOUR_MS, ["00:00", "00:15", "00:30", "00:45", "01:00"]),
        (2 * DAY_MS, ["00:00", "06:00", "12:00", "18:00", "00:00", "06:00", "12:00", "18:00", "00:00"]),
    ],
)
def test_ticks_lie_at_round_times(span: int, labels: list[str]) -> None:
    ticks = figures.time_ticks(W0, W0 + span)
    days = {"1\u202fJan": "00:00", "2\u202fJan": "00:00", "3\u202fJan": "00:00"}
    assert [days.get(tick.label, tick.label) for tick in ticks] == labels
    assert (ticks[0].at, ticks[-1].at) == (0, WIDTH)


@pytest.mark.parametrize("span", [1, 999, HOUR_MS, 7 * DAY_MS, 31 * DAY_MS, 3650 * DAY_MS])
def test_never_too_many_ticks(span: int) -> None:
    assert len(figures.time_ticks(W0 + 1, W0 + 1 + span)) <= figures.TICKS_MOST + 1


def test_durations_lie_on_a_logarithmic_scale() -> None:
    found = figures.duration_range(
        [("p50", 1000.0), ("p95", None), ("max", 10_000.0), ("least", 0.0)], 10_000.0
    )
    assert found.quantiles == (("p50", 1000.0, WIDTH / 2), ("max", 10_000.0, WIDTH), ("least", 0.0, 0))
    assert figures.duration_ticks(10_000.0)[-1] == Tick(WIDTH, "10\u202fs")


@pytest.mark.parametrize("longest", [0.0, 1.0, 9e9])
def test_a_scale_reaches_the_longest(longest: float) -> None:
    quantiles = figures.duration_range([("max", longest)], longest).quantiles
    assert 0 <= quantiles[0][2] <= WIDTH
    assert len(figures.duration_ticks(longest)) <= len(DURATIONS_MS)


def test_acts_by_hour() -> None:
    rows = [churn_hour("first", 4, 5), churn_hour("first", 2, 5, hour=3), churn_hour("lost", 8, 1, hour=1)]
    found = figures.causes(rows)
    assert found is not None
    assert found.bar_width == WIDTH / 4
    assert [(line.name, line.acts, line.top) for line in found.lines] == [("lost", 8, 8), ("first", 6, 4)]
    assert [(bar.x, bar.height) for bar in found.lines[1].bars] == [(0, HEIGHT), (WIDTH * 0.75, HEIGHT / 2)]
    assert figures.causes([]) is None


def test_many_causes_are_joined() -> None:
    found = figures.causes([churn_hour(f"cause-{n:02}", 20 - n, 1) for n in range(14)])
    assert found is not None
    assert [line.name for line in found.lines] == [*(f"cause-{n:02}" for n in range(9)), OTHERS]
    assert found.lines[-1].acts == sum(20 - n for n in range(9, 14))


def test_heat() -> None:
    def of(unit: str, day: int, availability: float | None) -> Any:
        return row(AVAILABILITY.table, unit, "day", from_ms=W0 + day * DAY_MS, availability=availability)

    rows = [
        of("cluster:c", day, value) for day, value in enumerate([1.0, 0.99995, 0.9991, 0.995, 0.9, 0.5, None])
    ]
    found = figures.heat([*rows, of("broker:c:a", 2, 1.0)], ["cluster:c", "broker:c:a", "broker:c:new"])
    assert found is not None
    assert len(found.days) == 7
    cluster, broker = found.lines
    assert [cell.level for cell in cluster[1]] == [0, 1, 2, 3, 4, 5, None]
    assert [cell.level for cell in broker[1]] == [None, None, 0, None, None, None, None]
    assert cluster[1][1].title == "2026-01-02: 99.9950\u202f%"
    assert figures.heat(rows, ["broker:c:new"]) is None
