"""Versions of brokers: cluster, epoch, zone, acting master and drain, from one change to the next."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline.clean import clean
from mqpipeline.tables.broker_versions import broker_versions
from tests.mqpipeline.stream import (
    Case,
    Reported,
    Stream,
    at,
    checkpointed,
    drain,
    landing,
    registered,
    removed,
    seconds,
    started,
    updated,
)

pytestmark = pytest.mark.timeout(300)

COLUMNS = ("cluster", "epoch", "zone", "acting", "drain", "from_ms", "to_ms")
BY_ALICE = {"owner": "alice", "reason": "disk", "until_ms": at(90)}
DRAINED = ("alice", "disk", at(90))
PLAIN = ("c1", 1, None, False, None)


def first(epoch: int = 1, **more: Any) -> Reported:
    return registered("first", "a", epoch, **more)


def holed() -> Stream:
    """A broker, a last entry at 20, and a hole."""
    return Stream().add(10, first()).add(20, registered("first", "z", 9)).lose(2)


CASES = [
    Case(
        "registered",
        Stream().add(10, first(zone="z1", acting=1)).rows(),
        [("c1", 1, "z1", True, None, 10, None)],
    ),
    Case(
        "a second cluster's name",
        Stream().add(10, first(), registered("join", "a", 1, id=1, cluster="c2", group_cluster="c1")).rows(),
        [(*PLAIN, 10, None)],
    ),
    Case(
        "zone and acting change",
        Stream()
        .add(10, first(zone="z1"))
        .add(20, updated("a", 1, zone="z2", zone_before="z1"))
        .add(30, updated("a", 1, acting="1", acting_before="0"))
        .add(40, updated("a", 1, zone="", zone_before="z2"))
        .rows(),
        [
            ("c1", 1, "z1", False, None, 10, 20),
            ("c1", 1, "z2", False, None, 20, 30),
            ("c1", 1, "z2", True, None, 30, 40),
            ("c1", 1, None, True, None, 40, None),
        ],
    ),
    Case(
        "a new data version is none",
        Stream().add(10, first(zone="z1")).add(20, updated("a", 1, dv="0:1:2")).rows(),
        [("c1", 1, "z1", False, None, 10, None)],
    ),
    Case(
        "a death is none",
        Stream().add(10, first()).add(20, removed("lost", "a", 1, since=10)).rows(),
        [(*PLAIN, 10, None)],
    ),
    Case(
        "a new epoch: the zone is recorded again",
        Stream().add(10, first(zone="z1")).add(20, first(2)).rows(),
        [("c1", 1, "z1", False, None, 10, 20), ("c1", 2, None, False, None, 20, None)],
    ),
    Case(
        "drained over a restart, and no more",
        Stream()
        .add(10, first())
        .add(20, drain("drain", "a", None, BY_ALICE))
        .add(30, first(2))
        .add(40, drain("undrain", "a", BY_ALICE, None))
        .rows(),
        [
            (*PLAIN, 10, 20),
            ("c1", 1, None, False, DRAINED, 20, 30),
            ("c1", 2, None, False, DRAINED, 30, 40),
            ("c1", 2, None, False, None, 40, None),
        ],
    ),
    Case(
        "a drain that is over ended with its time",
        Stream()
        .add(10, first())
        .add(20, drain("drain", "a", None, BY_ALICE))
        .add(95, drain("drain_end", "a", BY_ALICE, None, effective_ms=at(90)))
        .rows(),
        [(*PLAIN, 10, 20), ("c1", 1, None, False, DRAINED, 20, 90), (*PLAIN, 90, None)],
    ),
    Case(
        "a drain before the broker",
        Stream().add(10, drain("drain", "a", None, {"owner": "bob", "reason": ""})).add(20, first()).rows(),
        [
            (None, None, None, None, ("bob", "", None), 10, 20),
            ("c1", 1, None, False, ("bob", "", None), 20, None),
        ],
    ),
    Case("checkpointed", holed().members(30, a_1={0: ("", 10)}).rows(), [(*PLAIN, 10, None)]),
    Case(
        "checkpointed otherwise behind a hole",
        holed().add(30, checkpointed("a", 1, {0: ("", 10)}, zone="z1", drain=BY_ALICE)).rows(),
        [(*PLAIN, 10, 20), ("c1", 1, "z1", False, DRAINED, 30, None)],
    ),
    Case(
        "changed behind a hole",
        holed().add(30, updated("a", 1, zone="z1", zone_before="")).rows(),
        [(*PLAIN, 10, 30), ("c1", 1, "z1", False, None, 30, None)],
    ),
    Case(
        "another epoch behind a hole",
        holed().add(30, first(3)).rows(),
        [(*PLAIN, 10, 20), ("c1", 3, None, False, None, 30, None)],
    ),
    Case("nothing recorded behind a hole", holed().members(30).rows(), [(*PLAIN, 10, 20)]),
    Case(
        "a new incarnation",
        Stream().add(10, first()).rows() + Stream(50).add(50, started(), first()).rows(),
        [(*PLAIN, 10, 50), (*PLAIN, 50, None)],
    ),
]
Rows = dict[str, list[tuple[object, ...]]]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Rows:
    """The versions of broker a in every case, in order."""
    rows: Rows = {}
    versions = (
        broker_versions(clean(landing(spark, CASES)).localCheckpoint())
        .where("broker = 'a'")
        .orderBy("inc", "from_ms")
    )
    for row in versions.select("namespace", *COLUMNS).collect():
        drained = None if row.drain is None else tuple(row.drain)
        listed = [drained if name == "drain" else row[name] for name in COLUMNS]
        rows.setdefault(row.namespace, []).append(seconds(listed, 5, 6))
    return rows


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_edges(found: Rows, case: Case) -> None:
    assert found[case.id] == case.expected
