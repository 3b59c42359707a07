"""Many members gone at once."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline.reports.incidents import incidents
from mqpipeline.schemas import BROKER_SESSIONS
from tests.mqpipeline.reports.literal import cases, ms, session, state, states_frame
from tests.mqpipeline.rows import frame

END = 10_000
Rows = list[dict[str, Any]]


def _brokers(
    count: int, downs: dict[float, float | None], cause: str = "expired", **more: Any
) -> tuple[Rows, Rows]:
    """So many brokers UP from 0 on; one after the other goes at these times, to come back at a given time, or never."""
    states, sessions = [], []
    for i in range(count):
        broker, times = f"b{i}", list(downs.items())[i : i + 1]
        states.append(state(broker, "UP", 0, times[0][0] if times else END, **more))
        for down, back in times:
            sessions.append(session(broker, 0, down, cause, recorded=down + 2, **more))
            states.append(state(broker, "DOWN", down, back or END, **more))
            if back:
                states.append(state(broker, "UP", back, END, **more))
    return states, sessions


def _again() -> tuple[Rows, Rows]:
    """b0 goes at 100, is back at 105, goes again at 110 and is back at 200."""
    states, sessions = _brokers(20, {100: 105, 101: 150, 102: 160, 103: 170})
    states = [row for row in states if row["broker"] != "b0" or row["from_ms"] < ms(105)]
    states += [state("b0", "UP", 105, 110), state("b0", "DOWN", 110, 200), state("b0", "UP", 200, END)]
    return states, [*sessions, session("b0", 105, 110, "lost", recorded=110)]


def _two_clusters() -> tuple[Rows, Rows]:
    """Slots of one name in two clusters are two."""
    states, sessions = _brokers(10, {100: None, 101: None})
    others, theirs = _brokers(10, {102: None, 103: None}, cause="closed", cluster="c0")
    return states + others, sessions + theirs


def _after_unknown() -> tuple[Rows, Rows]:
    """The stream began from scratch at 40; three are not back a minute later."""
    brokers = [f"b{i}" for i in range(20)]
    gone = brokers[:3]
    states = [state(b, "UP", 0, 40) for b in brokers] + [
        state(b, "UNKNOWN", 40, 100 if b in gone else 50) for b in brokers
    ]
    states += [state(b, "DOWN", 100, END) if b in gone else state(b, "UP", 50, END) for b in brokers]
    return states, [session(b, 0, 40, "incarnation") for b in brokers]


CASES: dict[str, tuple[tuple[Rows, Rows], set[tuple[Any, ...]]]] = {
    "the worked example": (
        _brokers(20, {1000: None, 1004: None, 1009: None, 1031: None, 1080: None}),
        {(1000, 1031, 4, 0.2, None)},
    ),
    "thirty seconds still join": (
        _brokers(9, {100: None, 130: None, 160: None}),
        {(100, 160, 3, 1 / 3, None)},
    ),
    "a bit more does not": (_brokers(9, {100: None, 130: None, 160.001: None}), set()),
    "two are none": (_brokers(3, {100: None, 101: None}), set()),
    "a tenth of those that were UP": (
        _brokers(30, {100: None, 101: None, 102: None}),
        {(100, 102, 3, 0.1, None)},
    ),
    "less than a tenth": (_brokers(31, {100: None, 101: None, 102: None}), set()),
    "those that had gone before are not UP": (
        _brokers(33, {10: None, 50: None, 100: None, 101: None, 102: None}),
        set(),
    ),
    "a tenth of those that are left": (
        _brokers(32, {10: None, 50: None, 100: None, 101: None, 102: None}),
        {(100, 102, 3, 0.1, None)},
    ),
    "restored when nine of ten are back": (
        _brokers(20, {100 + i: 300 + i for i in range(10)}),
        {(100, 109, 10, 0.5, 308)},
    ),
    "restored when the last of four is back": (
        _brokers(20, {100: 400, 101: 300, 102: 500, 103: 200}),
        {(100, 103, 4, 0.2, 500)},
    ),
    "not restored while too few are back": (
        _brokers(20, {100: 400, 101: 300, 102: None}),
        {(100, 102, 3, 0.15, None)},
    ),
    "back in between, but gone again": (_again(), {(100, 110, 4, 0.2, 200)}),
    "two incidents": (
        _brokers(20, {100: 150, 101: 160, 102: 170, 1000: None, 1001: None, 1002: None}),
        {(100, 102, 3, 0.15, 170), (1000, 1002, 3, 0.15, None)},
    ),
    "in two clusters": (_two_clusters(), {(100, 103, 4, 0.2, None)}),
    "not back after a new incarnation": (_after_unknown(), {(100, 100, 3, 3 / 17, None)}),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    states = states_frame(spark, cases({name: rows for name, ((rows, _), _) in CASES.items()}))
    sessions = frame(spark, BROKER_SESSIONS, cases({name: rows for name, ((_, rows), _) in CASES.items()}))
    by_case: dict[str, list[dict[str, Any]]] = {name: [] for name in CASES}
    for row in incidents(states, sessions).collect():
        by_case[row.namespace].append(row.asDict(recursive=True))
    return by_case


@pytest.mark.parametrize("name", CASES)
def test_mass_expiry(name: str, found: dict[str, list[dict[str, Any]]]) -> None:
    reported = {
        (row["start_ms"] / 1000, row["end_ms"] / 1000, row["members"], row["share"], row["restored_ms"])
        for row in found[name]
    }
    expected = {(*values[:4], None if values[4] is None else ms(values[4])) for values in CASES[name][1]}
    assert reported == expected


def test_what_an_incident_tells(found: dict[str, list[dict[str, Any]]]) -> None:
    row = found["in two clusters"][0]
    assert (row["type"], row["key"], row["clusters"]) == ("mass_expiry", "", ["c0", "c1"])
    assert row["causes"] == {"closed": 2, "expired": 2}
    assert row["ids"] == [{"ms": ms(at), "n": 0} for at in (102, 103, 104, 105)]
    assert found["not back after a new incarnation"][0]["causes"] == {"incarnation": 3}


def test_a_member_counts_once_by_what_took_it_first(found: dict[str, list[dict[str, Any]]]) -> None:
    row = found["back in between, but gone again"][0]
    assert row["causes"] == {"expired": 4}
    assert {"ms": ms(110), "n": 0} in row["ids"]
