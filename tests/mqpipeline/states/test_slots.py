from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline.schemas import BROKER_SESSIONS
from mqpipeline.states.slots import known_until, slot_states
from tests.mqpipeline.rows import Literal, frame

AS_OF = 1000
RETIRE, UNTOLD = 300, 60
Reported = list[tuple[str, int, int]]


def stay(start: int, end: int | None, cause: str | None = None, **more: Any) -> Literal:
    return {"start_ms": start, "end_ms": end, "end_cause": cause, "start_id": (start, 0), "inc": 1, **more}


CASES: Mapping[str, tuple[list[Literal], Reported]] = {
    "open": ([stay(100, None)], [("UP", 100, 1000)]),
    "expired": (
        [stay(100, 200, "expired"), stay(300, None)],
        [("UP", 100, 200), ("DOWN", 200, 300), ("UP", 300, 1000)],
    ),
    "lost": (
        [stay(100, 200, "lost"), stay(300, None)],
        [("UP", 100, 200), ("DOWN", 200, 300), ("UP", 300, 1000)],
    ),
    "closed": (
        [stay(100, 200, "closed"), stay(300, None)],
        [("UP", 100, 200), ("DOWN", 200, 300), ("UP", 300, 1000)],
    ),
    "expired while drained": (
        [stay(100, 200, "expired", drained=True)],
        [("UP", 100, 200), ("PLANNED", 200, 1000)],
    ),
    "lost while drained": (
        [stay(100, 200, "lost", drained=True)],
        [("UP", 100, 200), ("PLANNED", 200, 1000)],
    ),
    "closed while drained": (
        [stay(100, 200, "closed", drained=True)],
        [("UP", 100, 200), ("PLANNED", 200, 1000)],
    ),
    "unregistered": ([stay(100, 200, "unregistered")], [("UP", 100, 200), ("PLANNED", 200, 1000)]),
    "evicted": ([stay(100, 200, "evicted")], [("UP", 100, 200), ("PLANNED", 200, 1000)]),
    "switched": ([stay(100, 200, "switched")], [("UP", 100, 200), ("PLANNED", 200, 1000)]),
    "replaced: no gap": ([stay(100, 200, "replaced"), stay(200, None)], [("UP", 100, 1000)]),
    "a new incarnation, back soon": (
        [stay(100, 200, "incarnation"), stay(230, None, inc=2)],
        [("UP", 100, 200), ("UNKNOWN", 200, 230), ("UP", 230, 1000)],
    ),
    "a new incarnation, back late": (
        [stay(100, 200, "incarnation"), stay(400, None, inc=2)],
        [("UP", 100, 200), ("UNKNOWN", 200, 260), ("DOWN", 260, 400), ("UP", 400, 1000)],
    ),
    "a hole, back late": (
        [stay(100, 200, "gap"), stay(400, None)],
        [("UP", 100, 200), ("UNKNOWN", 200, 260), ("DOWN", 260, 400), ("UP", 400, 1000)],
    ),
    "a hole, never back": (
        [stay(100, 200, "gap")],
        [("UP", 100, 200), ("UNKNOWN", 200, 260), ("DOWN", 260, 500)],
    ),
    "mirrored: cause unknown": (
        [stay(100, 200, "mirror"), stay(300, None)],
        [("UP", 100, 200), ("UNKNOWN", 200, 300), ("UP", 300, 1000)],
    ),
    "down until retired": ([stay(100, 200, "expired")], [("UP", 100, 200), ("DOWN", 200, 500)]),
    "back after being retired": (
        [stay(100, 200, "expired"), stay(600, None)],
        [("UP", 100, 200), ("DOWN", 200, 500), ("UP", 600, 1000)],
    ),
    "planned is never retired": (
        [stay(100, 200, "unregistered"), stay(900, None)],
        [("UP", 100, 200), ("PLANNED", 200, 900), ("UP", 900, 1000)],
    ),
    "start = end adds no time": (
        [stay(100, 200, "expired"), stay(250, 250, "expired"), stay(300, None)],
        [("UP", 100, 200), ("DOWN", 200, 300), ("UP", 300, 1000)],
    ),
    "start = end says why it is away": (
        [stay(100, 200, "expired"), stay(250, 250, "unregistered")],
        [("UP", 100, 200), ("DOWN", 200, 250), ("PLANNED", 250, 1000)],
    ),
    "begun after as_of": ([stay(1000, None)], []),
    "ended after as_of": ([stay(100, 1100, "expired")], [("UP", 100, 1000)]),
    "history begins later": (
        [stay(50, 100, "expired", left_censored=True)],
        [("UP", 50, 100), ("DOWN", 100, 400)],
    ),
}


@pytest.fixture(scope="module")
def reported(spark: SparkSession) -> Mapping[str, Reported]:
    """The states of one slot for each case, whose broker bears its name."""
    slot = {"namespace": "n", "cluster": "c", "broker_id": 0}
    rows = [{**row, **slot, "broker": case} for case, (sessions, _) in CASES.items() for row in sessions]
    states = (
        slot_states(frame(spark, BROKER_SESSIONS, rows), AS_OF, RETIRE, UNTOLD).orderBy("from_ms").collect()
    )
    return {
        case: [(row.state, row.from_ms, row.to_ms) for row in states if row.broker == case] for case in CASES
    }


@pytest.mark.parametrize("case", CASES)
def test_states(reported: Mapping[str, Reported], case: str) -> None:
    assert reported[case] == CASES[case][1]


def test_slots_are_apart(spark: SparkSession) -> None:
    slots = [
        ("n", "c", "a", 0),
        ("m", "c", "a", 0),
        ("n", "d", "a", 0),
        ("n", "c", "b", 0),
        ("n", "c", "a", 1),
    ]
    rows = [
        {
            **stay(100, 200, "expired"),
            **dict(zip(("namespace", "cluster", "broker", "broker_id"), slot, strict=True)),
        }
        for slot in slots
    ]
    states = slot_states(frame(spark, BROKER_SESSIONS, rows), AS_OF).collect()
    assert sorted(row[:4] for row in states) == sorted(slots * 2)


def test_seven_days_and_two_heartbeats(spark: SparkSession) -> None:
    week = 7 * 24 * 3_600_000
    row = {**stay(0, 1000, "gap"), "namespace": "n", "cluster": "c", "broker": "a", "broker_id": 0}
    states = slot_states(frame(spark, BROKER_SESSIONS, [row]), 2 * week).orderBy("from_ms").collect()
    reported = [(state.state, state.from_ms, state.to_ms) for state in states]
    assert reported == [("UP", 0, 1000), ("UNKNOWN", 1000, 61_000), ("DOWN", 61_000, 1000 + week)]


def test_what_goes_on_is_unknown_where_nothing_more_is_known_of_its_namespace(spark: SparkSession) -> None:
    stays = [
        stay(100, None, namespace="gone", broker_id=0),
        stay(100, 200, "lost", namespace="gone", broker_id=1),
        stay(100, None, namespace="present", broker_id=0),
    ]
    sessions = known_until(frame(spark, BROKER_SESSIONS, stays), {"gone": 700})
    states = (
        slot_states(sessions, AS_OF, RETIRE, UNTOLD).orderBy("namespace", "broker_id", "from_ms").collect()
    )
    assert [(row.namespace, row.broker_id, row.state, row.from_ms, row.to_ms) for row in states] == [
        ("gone", 0, "UP", 100, 700),
        ("gone", 0, "UNKNOWN", 700, 1000),
        ("gone", 1, "UP", 100, 200),
        ("gone", 1, "DOWN", 200, 500),
        ("present", 0, "UP", 100, 1000),
    ]
