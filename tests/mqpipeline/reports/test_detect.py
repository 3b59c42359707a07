"""How long a death goes unnoticed."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline.reports.detect import detect
from mqpipeline.schemas import BROKER_SESSIONS, HEARTBEATS
from tests.mqpipeline.reports import example
from tests.mqpipeline.reports.literal import Log, Reported, cases, clean, ms, reported, session, window
from tests.mqpipeline.rows import frame

END = 10_000
TIMES = ("n", "p50_ms", "p95_ms", "max_ms", "lower_p50_ms", "without_last_seen", "record_delay_max_ms")
Rows = list[dict[str, Any]]

CASES: dict[str, tuple[Rows, tuple[Any, ...] | None]] = {
    "a lapse, from the last heartbeat to leaving the routes": (
        [session("a", 0, 200, "expired", last_seen=80, recorded=201)],
        (1, 120_000, 120_000, 120_000, 90_000, 0, 1000),
    ),
    "the lower bound is not less than nothing": (
        [session("a", 0, 200, "expired", last_seen=180)],
        (1, 20_000, 20_000, 20_000, 0, 0, 0),
    ),
    "a lost connection, from closing to record": (
        [session("a", 0, 200, "lost", closed=198, last_seen=180)],
        (1, 2000, 2000, 2000, 2000, 0, None),
    ),
    "closed without a probe": (
        [session("a", 0, 200, "closed", closed=199, last_seen=180)],
        (1, 1000, 1000, 1000, 1000, 0, None),
    ),
    "lost, but when it closed is unknown": (
        [session("a", 0, 200, "lost", last_seen=160)],
        (1, 40_000, 40_000, 40_000, 10_000, 0, None),
    ),
    "without a last sign of life": (
        [session("a", 0, 200, "expired", recorded=202), session("b", 0, 200, "lost")],
        (0, None, None, None, None, 2, 2000),
    ),
    "an unregistered or evicted one did not die": (
        [session("a", 0, 200, "unregistered", last_seen=1), session("b", 0, 200, "evicted", last_seen=1)],
        None,
    ),
    "ended as the window begins": (
        [session("a", -100, 0, "expired", last_seen=-7)],
        (1, 7000, 7000, 7000, 0, 0, 0),
    ),
    "ended before the window, recorded in it": (
        [session("a", -100, -1, "expired", last_seen=-7, recorded=1)],
        None,
    ),
    "ended as the window ends": ([session("a", 0, END, "expired", last_seen=1)], None),
    "the ninety-fifth of twenty is the nineteenth": (
        [session("a", i, 500 + i, "lost", closed=500) for i in range(1, 21)],
        (20, 10_000, 19_000, 20_000, 10_000, 0, None),
    ),
}


def _heartbeat(at: float, broker: str = "a", **more: Any) -> dict[str, Any]:
    member = {"cluster": "c1", "broker": broker, "broker_id": 0, "addr": f"{broker}:10911", "code": 322}
    return {"id_ms": ms(at), "id_n": 0} | member | more


SILENT: dict[str, tuple[Rows, Rows, Rows, int | None]] = {
    "no heartbeats are recorded": ([session("a", 0)], [], [], None),
    "heartbeats were recorded, but not lately": ([session("a", 0)], [_heartbeat(END - 3601)], [], None),
    "silent for longer than its timeout": ([session("a", 0)], [_heartbeat(END - 121)], [], 1),
    "silent for just its timeout": ([session("a", 0)], [_heartbeat(END - 120)], [], 0),
    "its address sends heartbeats, but in another slot": (
        [session("a", 0)],
        [_heartbeat(END - 130), _heartbeat(END - 1, broker_id=1)],
        [],
        1,
    ),
    "it began a moment ago and has sent no heartbeat yet": (
        [session("a", END - 5), session("b", 0)],
        [_heartbeat(END - 500, "b"), _heartbeat(END - 1, "b")],
        [],
        0,
    ),
    "heartbeats are recorded since a moment ago": (
        [session("a", 0), session("b", 0)],
        [_heartbeat(END - 60, "b")],
        [],
        0,
    ),
    "it named a shorter timeout": (
        [session("a", 0)],
        [_heartbeat(END - 11)],
        Log().member("registered", "first", 0, "a", fields={"timeout_ms": "10000"}).rows,
        1,
    ),
    "it named another since": (
        [session("a", 0)],
        [_heartbeat(END - 11)],
        Log()
        .member("registered", "first", 0, "a", fields={"timeout_ms": "10000"})
        .member("updated", "register", 1, "a", fields={"timeout_ms": "12000", "timeout_ms_before": "10000"})
        .member("updated", "register", 2, "a", fields={"zone": "z"})
        .rows,
        0,
    ),
    "the timeout it named is unreadable": (
        [session("a", 0)],
        [_heartbeat(END - 121)],
        Log().member("registered", "first", 0, "a", fields={"timeout_ms": "long"}).rows,
        1,
    ),
    "it is gone": ([session("a", 0, END - 4000, "expired", last_seen=1)], [_heartbeat(END - 130)], [], None),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Reported:
    sessions = {name: rows for name, (rows, _) in CASES.items()} | {"example": example.SESSIONS}
    sessions |= {name: rows for name, (rows, *_) in SILENT.items()}
    heartbeats = cases({name: rows for name, (_, rows, *_) in SILENT.items()})
    events = cases({name: rows for name, (*_, rows, _) in SILENT.items()})
    windows = [window(0, END, "day"), window(END - 3600, END, "1h"), window(0, 3600, "example")]
    report = detect(
        frame(spark, BROKER_SESSIONS, cases(sessions)),
        clean(spark, events),
        frame(spark, HEARTBEATS, heartbeats),
        windows,
        ms(END),
    )
    return reported(report, *TIMES, "censored")


@pytest.mark.parametrize("name", CASES)
def test_time_to_detect(name: str, found: Reported) -> None:
    assert found.get((name, "day", "cluster:c1"), (None,))[:-1] == (CASES[name][1] or ())


@pytest.mark.parametrize("name", SILENT)
def test_members_that_seem_dead_but_still_stand(name: str, found: Reported) -> None:
    assert found.get((name, "1h", "cluster:c1"), (None,))[-1] == SILENT[name][3]


def test_what_stands_at_the_end_says_nothing_of_windows_before(found: Reported) -> None:
    name = "silent for longer than its timeout"
    assert found[name, "day", "cluster:c1"][-1] == 1
    assert (name, "example", "cluster:c1") not in found


def test_the_worked_example(found: Reported) -> None:
    """0.2, 120, 120."""
    expected = (3, 120_000, 120_000, 120_000, 90_000, 0, 3400, None)
    assert found["example", "example", "cluster:c1"] == expected
