from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.schemas import ROUTE_VERSIONS
from pipeline.states.topics import pair_states, topic_states, weighted_time_in
from pipeline.windows import Window
from tests.pipeline.rows import Literal, frame, rows_of

FROM, TO = 0, 100
WRITABLE = "namespace string, broker string, state string, from_ms bigint, to_ms bigint"
BROKERS = [
    ("n", "up", "UP", 0, 100),
    ("n", "falls", "UP", 0, 50),
    ("n", "falls", "DOWN", 50, 100),
    ("n", "rises", "DOWN", 0, 50),
    ("n", "rises", "UP", 50, 100),
    ("n", "down", "DOWN", 0, 100),
    ("n", "unknown", "UNKNOWN", 0, 100),
    ("n", "planned", "PLANNED", 0, 100),
    ("m", "falls", "UP", 0, 100),
]
Told = list[tuple[str, int, int]]


def pair(broker: str, begin: int = 0, end: int | None = None, **more: Any) -> Literal:
    held: Literal = {"from_ms": begin, "to_ms": end, "write_queues": 4, "perm": 6, "from_cause": "register"}
    return {"namespace": "n", "broker": broker, **held, **more}


CASES: Mapping[str, tuple[list[Literal], Told]] = {
    "as its broker": ([pair("falls")], [("UP", 0, 50), ("DOWN", 50, 100)]),
    "read only": ([pair("falls", perm=4)], [("PLANNED", 0, 100)]),
    "read only as an acting master has it": (
        [pair("falls", perm=4, from_cause="acting")],
        [("UP", 0, 50), ("DOWN", 50, 100)],
    ),
    "read only, nobody knows why": ([pair("up", perm=4, from_cause=None)], [("PLANNED", 0, 100)]),
    "write only": ([pair("up", perm=2)], [("UP", 0, 100)]),
    "in force for a while": ([pair("falls", 20, 80)], [("UP", 20, 50), ("DOWN", 50, 80)]),
    "no pair for a while": ([pair("up", 10, 20), pair("up", 30, 40)], [("UP", 10, 20), ("UP", 30, 40)]),
    "versions side by side": ([pair("up", 10, 20, epoch=1), pair("up", 20, 40, epoch=2)], [("UP", 10, 40)]),
    "up if any is": ([pair("falls"), pair("rises")], [("UP", 0, 100)]),
    "down before unknown": ([pair("unknown"), pair("down")], [("DOWN", 0, 100)]),
    "unknown before planned": ([pair("unknown"), pair("planned")], [("UNKNOWN", 0, 100)]),
    "planned if all are": ([pair("planned"), pair("up", perm=4)], [("PLANNED", 0, 100)]),
    "a broker that was never seen": ([pair("nobody"), pair("planned")], [("UNKNOWN", 0, 100)]),
    "up without write queues is not up": ([pair("up", write_queues=0), pair("down")], [("DOWN", 0, 100)]),
    "nothing but pairs without write queues": ([pair("up", write_queues=0)], [("PLANNED", 0, 100)]),
    "outside": ([pair("up", -50, 0), pair("up", 100)], []),
    "one namespace knows nothing of another": ([pair("falls", namespace="m")], [("UP", 0, 100)]),
}


@pytest.fixture(scope="module")
def pairs(spark: SparkSession) -> DataFrame:
    """The pairs of one topic for each case, which bears its name."""
    rows = [{**row, "topic": case} for case, (versions, _) in CASES.items() for row in versions]
    return pair_states(
        frame(spark, ROUTE_VERSIONS, rows), spark.createDataFrame(BROKERS, WRITABLE), FROM, TO
    ).cache()


@pytest.fixture(scope="module")
def told(pairs: DataFrame) -> dict[str, Told]:
    states = topic_states(pairs, FROM, TO).orderBy("from_ms").collect()
    return {
        case: [(row.state, row.from_ms, row.to_ms) for row in states if row.topic == case] for case in CASES
    }


@pytest.mark.parametrize("case", CASES)
def test_a_topic(told: dict[str, Told], case: str) -> None:
    assert told[case] == CASES[case][1]


def test_pairs_of_one_topic(pairs: DataFrame) -> None:
    found = pairs.where("topic = 'up if any is'")
    assert rows_of(found, "broker", "write_queues", "state", "from_ms", "to_ms") == {
        ("falls", 4, "UP", 0, 50),
        ("falls", 4, "DOWN", 50, 100),
        ("rises", 4, "DOWN", 0, 50),
        ("rises", 4, "UP", 50, 100),
    }


def test_weights(spark: SparkSession) -> None:
    """Windows that overlap, one within a piece and one over several."""
    columns = "namespace string, topic string, write_queues int, state string, from_ms bigint, to_ms bigint"
    rows = [
        ("n", "t", 4, "UP", 0, 100),
        ("n", "t", 8, "UP", 0, 50),
        ("n", "t", 8, "DOWN", 50, 100),
        ("n", "t", 2, "PLANNED", 40, 60),
        ("n", "t", 2, "UNKNOWN", 60, 70),
        ("n", "u", 1, "DOWN", 90, 100),
    ]
    of = [Window("w", 0, 100), Window("w", 45, 55), Window("x", 45, 55), Window("y", 200, 300)]
    found = weighted_time_in(spark.createDataFrame(rows, columns), of)
    assert rows_of(found, "topic", "window", "from_ms", "to_ms", "up", "down", "planned") == {
        ("t", "w", 0, 100, 800, 400, 40),
        ("t", "w", 45, 55, 80, 40, 20),
        ("t", "x", 45, 55, 80, 40, 20),
        ("u", "w", 0, 100, 0, 10, 0),
    }
