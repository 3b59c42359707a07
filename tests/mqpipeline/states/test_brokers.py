from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqpipeline.schemas import BROKER_VERSIONS
from mqpipeline.states.brokers import broker_states, writable_states
from tests.mqpipeline.rows import Literal, as_frame, frame

AS_OF = 100
SLOTS = "namespace string, cluster string, broker string, broker_id bigint, state string, from_ms bigint, to_ms bigint"
Reported = list[tuple[str, int, int]]
Slots = list[tuple[int, str, int, int]]

ANY: Mapping[str, tuple[Slots, Reported]] = {
    "up if any is": (
        [(0, "DOWN", 10, 50), (1, "UP", 20, 40)],
        [("DOWN", 10, 20), ("UP", 20, 40), ("DOWN", 40, 50)],
    ),
    "down before unknown": ([(0, "UNKNOWN", 10, 50), (1, "DOWN", 10, 50)], [("DOWN", 10, 50)]),
    "unknown before planned": ([(0, "UNKNOWN", 10, 50), (1, "PLANNED", 10, 50)], [("UNKNOWN", 10, 50)]),
    "planned if all are": ([(0, "PLANNED", 10, 50), (1, "PLANNED", 10, 50)], [("PLANNED", 10, 50)]),
    "a slot not seen yet does not count": (
        [(0, "PLANNED", 10, 50), (1, "DOWN", 30, 40)],
        [("PLANNED", 10, 30), ("DOWN", 30, 40), ("PLANNED", 40, 50)],
    ),
    "all retired for a while": ([(0, "UP", 10, 50), (1, "UP", 70, 80)], [("UP", 10, 50), ("UP", 70, 80)]),
    "one takes over from another": ([(0, "UP", 10, 50), (1, "UP", 50, 80)], [("UP", 10, 80)]),
    "a change that changes nothing": (
        [(0, "UP", 10, 80), (1, "DOWN", 20, 30), (1, "UP", 30, 40)],
        [("UP", 10, 80)],
    ),
}
Drains = list[tuple[int, int | None, int | None]]
WRITABLE: Mapping[str, tuple[Slots, Drains, Reported]] = {
    "as the master's slot": (
        [(0, "UP", 10, 50), (0, "DOWN", 50, 100), (1, "UP", 10, 100)],
        [],
        [("UNKNOWN", 0, 10), ("UP", 10, 50), ("DOWN", 50, 100)],
    ),
    "only slaves": ([(1, "UP", 10, 100)], [], [("UNKNOWN", 0, 100)]),
    "retired": ([(0, "DOWN", 10, 50)], [], [("UNKNOWN", 0, 10), ("DOWN", 10, 50), ("UNKNOWN", 50, 100)]),
    "left on purpose": ([(0, "PLANNED", 10, 100)], [], [("UNKNOWN", 0, 10), ("PLANNED", 10, 100)]),
    "drained": (
        [(0, "UP", 0, 50), (0, "DOWN", 50, 100)],
        [(20, 60, None)],
        [("UP", 0, 20), ("PLANNED", 20, 60), ("DOWN", 60, 100)],
    ),
    "drained still": ([(0, "UP", 0, 100)], [(20, None, None)], [("UP", 0, 20), ("PLANNED", 20, 100)]),
    "a drain that is over, though not recorded": (
        [(0, "UP", 0, 100)],
        [(20, None, 40)],
        [("UP", 0, 20), ("PLANNED", 20, 40), ("UP", 40, 100)],
    ),
}


def slots_of(spark: SparkSession, cases: Mapping[str, tuple[Slots, *tuple[Any, ...]]]) -> DataFrame:
    rows = [("n", "c", case, *slot) for case, (slots, *_) in cases.items() for slot in slots]
    return as_frame(spark, rows, SLOTS)


def states_of(states: DataFrame) -> dict[str, Reported]:
    reported: dict[str, Reported] = {}
    for row in states.orderBy("from_ms").collect():
        reported.setdefault(row.broker, []).append((row.state, row.from_ms, row.to_ms))
    return reported


@pytest.fixture(scope="module")
def of_any(spark: SparkSession) -> dict[str, Reported]:
    return states_of(broker_states(slots_of(spark, ANY)))


@pytest.mark.parametrize("case", ANY)
def test_a_broker(of_any: dict[str, Reported], case: str) -> None:
    assert of_any[case] == ANY[case][1]


@pytest.fixture(scope="module")
def of_writable(spark: SparkSession) -> dict[str, Reported]:
    versions: list[Literal] = [
        {"namespace": "n", "broker": case, "drain": ("ann", "upgrade", until), "from_ms": begin, "to_ms": end}
        for case, (_, drains, _) in WRITABLE.items()
        for begin, end, until in drains
    ]
    not_drained: list[Literal] = [{"namespace": "n", "broker": case, "from_ms": 0} for case in WRITABLE]
    table = frame(spark, BROKER_VERSIONS, versions + not_drained)
    return states_of(writable_states(slots_of(spark, WRITABLE), table, AS_OF))


@pytest.mark.parametrize("case", WRITABLE)
def test_a_broker_that_is_written_to(of_writable: dict[str, Reported], case: str) -> None:
    assert of_writable[case] == WRITABLE[case][2]


def test_a_name_that_moved_to_another_cluster_is_written_to_there(spark: SparkSession) -> None:
    rows = [("n", "c", "a", 0, "DOWN", 0, 100), ("n", "d", "a", 0, "UP", 50, 100)]
    slots = as_frame(spark, rows, SLOTS)
    states = writable_states(slots, frame(spark, BROKER_VERSIONS, []), AS_OF)
    assert states_of(states) == {"a": [("DOWN", 0, 50), ("UP", 50, 100)]}
    assert broker_states(slots).count() == 2
