from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mqpipeline.schemas import ROUTE_VERSIONS
from mqpipeline.states.topics import topic_time_in
from mqpipeline.windows import Window
from tests.mqpipeline.rows import Literal, as_frame, frame

TENTHS = [Window("tenth", begin, begin + 10) for begin in range(0, 100, 10)]
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
Reported = list[tuple[str, int, int]]


def pair(broker: str, begin: int = 0, end: int | None = None, **more: Any) -> Literal:
    held: Literal = {"from_ms": begin, "to_ms": end, "write_queues": 4, "perm": 6, "from_cause": "register"}
    return {"namespace": "n", "broker": broker, **held, **more}


CASES: Mapping[str, tuple[list[Literal], Reported]] = {
    "as its broker": ([pair("falls")], [("UP", 0, 50), ("DOWN", 50, 100)]),
    "read only": ([pair("falls", perm=4)], [("PLANNED", 0, 100)]),
    "read only as an acting master has it": (
        [pair("falls", perm=4, from_cause="acting")],
        [("UP", 0, 50), ("DOWN", 50, 100)],
    ),
    "read only, for no recorded cause": ([pair("up", perm=4, from_cause=None)], [("PLANNED", 0, 100)]),
    "write only": ([pair("up", perm=2)], [("UP", 0, 100)]),
    "in force for a while": ([pair("falls", 20, 80)], [("UP", 20, 50), ("DOWN", 50, 80)]),
    "no pair for a while": ([pair("up", 10, 20), pair("up", 30, 40)], [("UP", 10, 20), ("UP", 30, 40)]),
    "versions side by side": ([pair("up", 10, 20, epoch=1), pair("up", 20, 40, epoch=2)], [("UP", 10, 40)]),
    "up if any is": ([pair("falls"), pair("rises")], [("UP", 0, 100)]),
    "down before unknown": ([pair("unknown"), pair("down")], [("DOWN", 0, 100)]),
    "unknown before planned": ([pair("unknown"), pair("planned")], [("UNKNOWN", 0, 100)]),
    "planned if all are": ([pair("planned"), pair("up", perm=4)], [("PLANNED", 0, 100)]),
    "a broker that was never seen": ([pair("never-seen"), pair("planned")], [("UNKNOWN", 0, 100)]),
    "up without write queues is not up": ([pair("up", write_queues=0), pair("down")], [("DOWN", 0, 100)]),
    "nothing but pairs without write queues": ([pair("up", write_queues=0)], [("PLANNED", 0, 100)]),
    "outside": ([pair("up", -50, 0), pair("up", 100)], []),
    "one namespace knows nothing of another": ([pair("falls", namespace="m")], [("UP", 0, 100)]),
}


@pytest.fixture(scope="module")
def reported(spark: SparkSession) -> dict[str, dict[int, str]]:
    """The state of each case's topic, which bears its name, in every tenth in which there is one."""
    rows = [{**row, "topic": case} for case, (versions, _) in CASES.items() for row in versions]
    versions, writable = frame(spark, ROUTE_VERSIONS, rows), as_frame(spark, BROKERS, WRITABLE)
    found: dict[str, dict[int, str]] = {case: {} for case in CASES}
    for row in topic_time_in(versions, writable, TENTHS).collect():
        (state,) = (name for name in ("up", "down", "planned", "unknown") if row[f"{name}_ms"] == 10)
        assert row.from_ms not in found[row.topic], "rows are there twice"
        found[row.topic][row.from_ms] = state.upper()
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_topic(reported: dict[str, dict[int, str]], case: str) -> None:
    wanted = {tenth: state for state, begin, end in CASES[case][1] for tenth in range(begin, end, 10)}
    assert reported[case] == wanted


def test_any_text_names_a_topic(spark: SparkSession) -> None:
    """Also what is no text; and no topic is another one."""
    names = ("", ":", "T\u00e4", "a\x00b", "a")
    rows = [pair("up", topic=name, namespace=of) for name in names for of in ("n", "m", "n:")]
    odd = frame(spark, ROUTE_VERSIONS, [pair("up", topic="odd")]).withColumns(
        {name: F.expr("cast(x'ff00' as string)") for name in ("topic", "broker")}
    )
    versions = frame(spark, ROUTE_VERSIONS, rows).unionByName(odd)
    writable = as_frame(spark, BROKERS, WRITABLE).unionByName(
        odd.selectExpr("namespace", "broker", "'DOWN' as state", "0L as from_ms", "100L as to_ms")
    )
    found = topic_time_in(versions, writable, [Window("w", 0, 100)])
    reported = found.selectExpr("namespace", "hex(topic)", "up_ms", "down_ms").collect()
    wanted = [
        (of, name.encode().hex().upper(), 100 if of == "n" else 0, 0)
        for name in names
        for of in ("n", "m", "n:")
    ]
    assert sorted(map(tuple, reported)) == sorted([*wanted, ("n", "FF00", 0, 100)])
