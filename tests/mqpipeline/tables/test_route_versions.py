"""Versions of routes: what begins one, what ends it, and what a checkpoint says of it."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mqpipeline.clean import clean
from mqpipeline.schemas import ROUTE_VERSIONS, months
from mqpipeline.tables.route_versions import route_versions
from tests.mqpipeline.rows import version_rows
from tests.mqpipeline.stream import (
    Case,
    Reported,
    Stream,
    checkpoint,
    checkpointed,
    landing,
    registered,
    removed,
    seconds,
    started,
    topics,
)

pytestmark = pytest.mark.timeout(300)

ALICE = "token:alice"
FOUR, EIGHT, READ_ONLY = "4,4,6,0", "8,8,6,0", "8,8,4,0"
COLUMNS = ("topic", "broker", "epoch", "write_queues", "perm", "from_ms", "from_cause", "to_ms", "to_cause")


def version(
    since: float,
    until: float | None,
    cause: str | None = None,
    *,
    begun: str = "register",
    topic: str = "T",
    broker: str = "a",
    epoch: int | None = 1,
    write: int = 8,
    perm: int | None = 6,
) -> tuple[object, ...]:
    """A row expected, with seconds for its times."""
    return (topic, broker, epoch, write, perm, since, begun, until, cause)


def first(epoch: int = 1, data: str = EIGHT, broker: str = "a") -> tuple[Reported, Reported]:
    rows = topics("register", (broker, "", data, ["T"]), epoch=epoch)
    return registered("first", broker, epoch), rows


def change(cause: str, before: str, after: str, epoch: int = 1) -> Reported:
    return topics(cause, ("a", before, after, ["T"]), epoch=epoch)


def holed(stream: Stream) -> Stream:
    """A last entry at 20, and a hole."""
    return stream.add(20, registered("first", "z", 90)).lose(3)


def checked(stream: Stream, at_s: float, *rows: tuple[str, str, str, list[str]], epoch: int = 1) -> Stream:
    """A round that checkpoints broker a with these rows."""
    stream.add(at_s, checkpoint("begin")).add(at_s, checkpointed("a", epoch, {0: ("", 10)}))
    if rows:
        stream.add(at_s, checkpoint("topics", broker="a", epoch=epoch, rows=rows, count=len(rows)))
    return stream.add(at_s, checkpoint("end"))


BOTH = Stream().add(10, *first()).add(11, *first(2, FOUR, "b"))
CASES = [
    Case("in force", Stream().add(10, *first()).rows(), {version(10, None)}),
    Case(
        "a text that lacks numbers",
        Stream().add(10, *first(data="8,8,rw")).rows(),
        {version(10, None, perm=None)},
    ),
    Case(
        "changed",
        Stream().add(10, *first()).add(20, change("wipe", EIGHT, READ_ONLY)).rows(),
        {version(10, 20, "wipe"), version(20, None, begun="wipe", perm=4)},
    ),
    Case(
        "deleted, and there again",
        Stream()
        .add(10, *first())
        .add(20, change("topic_delete", EIGHT, ""))
        .add(30, change("topic_register", "", FOUR))
        .rows(),
        {version(10, 20, "topic_delete"), version(30, None, begun="topic_register", write=4)},
    ),
    Case(
        "another epoch",
        Stream().add(10, *first()).add(20, removed("lost", "a", 1, since=10)).add(30, *first(3)).rows(),
        {version(10, 30, "epoch"), version(30, None, epoch=3)},
    ),
    Case(
        "another epoch without the topic",
        Stream().add(10, *first()).add(30, registered("first", "a", 3)).rows(),
        {version(10, 30, "epoch")},
    ),
    Case(
        "a death ends nothing",
        Stream().add(10, *first()).add(20, removed("lost", "a", 1, since=10)).rows(),
        {version(10, None)},
    ),
    Case(
        "a member more, and one that comes back: the same epoch",
        Stream()
        .add(10, *first())
        .add(15, registered("join", "a", 1, id=1))
        .add(20, removed("expired", "a", 1, since=10, effective=20), registered("revive", "a", 1))
        .rows(),
        {version(10, None)},
    ),
    Case(
        "rows of two brokers do not say their epochs",
        BOTH.rows()
        + Stream(seq=BOTH.seq)
        .add(20, topics("topic_delete", ("a", EIGHT, "", ["T"]), ("b", FOUR, "", ["T"])))
        .add(30, topics("topic_register", ("a", "", FOUR, ["T"]), ("b", "", FOUR, ["T"])))
        .rows(),
        {
            version(10, 20, "topic_delete"),
            version(11, 20, "topic_delete", broker="b", epoch=2, write=4),
            version(30, None, begun="topic_register", write=4),
            version(30, None, begun="topic_register", broker="b", epoch=2, write=4),
        },
    ),
    Case(
        "no epoch is known: that of the first entry that says one",
        Stream(seq=5)
        .add(10, topics("topic_register", ("a", "", EIGHT, ["T"]), ("b", "", FOUR, ["T"])))
        .add(20, removed("lost", "a", 1, since=0))
        .add(30, *first(3, FOUR))
        .rows(),
        {
            version(10, 30, "epoch", begun="topic_register"),
            version(30, None, epoch=3, write=4),
            version(10, None, begun="topic_register", broker="b", epoch=None, write=4),
        },
    ),
    Case(
        "twice in one entry",
        Stream()
        .add(10, *first())
        .add(20, topics("topic_register", ("a", EIGHT, FOUR, ["T"]), ("a", FOUR, READ_ONLY, ["T"]), epoch=1))
        .rows(),
        {version(10, 20, "topic_register"), version(20, None, begun="topic_register", perm=4)},
    ),
    Case(
        "two changes at the same time",
        Stream()
        .add(10, *first())
        .add(20, change("wipe", EIGHT, READ_ONLY))
        .add(20, change("restore", READ_ONLY, EIGHT))
        .rows(),
        {
            version(10, 20, "wipe"),
            version(20, 20, "restore", begun="wipe", perm=4),
            version(20, None, begun="restore"),
        },
    ),
    Case(
        "half a group is none",
        Stream().add(10, *first()).add(30, *first(3)).rows()[:-1],
        {version(10, None)},
    ),
    Case(
        "checkpointed: no new version",
        checked(Stream().add(10, *first()), 20, ("a", "", EIGHT, ["T"])).rows(),
        {version(10, None)},
    ),
    Case(
        "checkpointed otherwise",
        checked(Stream().add(10, *first()), 20, ("a", "", FOUR, ["T"])).rows(),
        {version(10, 20, "checkpoint"), version(20, None, begun="checkpoint", write=4)},
    ),
    Case(
        "history begins with a checkpoint",
        checked(Stream(seq=9), 20, ("a", "", EIGHT, ["T"])).rows(),
        {version(20, None, begun="checkpoint")},
    ),
    Case(
        "over a hole, checkpointed",
        checked(holed(Stream().add(10, *first())), 30, ("a", "", EIGHT, ["T"])).rows(),
        {version(10, None)},
    ),
    Case(
        "over a hole, checkpointed, and changed later",
        checked(holed(Stream().add(10, *first())), 30, ("a", "", EIGHT, ["T"]))
        .add(40, change("wipe", EIGHT, READ_ONLY))
        .rows(),
        {version(10, 40, "wipe"), version(40, None, begun="wipe", perm=4)},
    ),
    Case(
        "over a hole, checkpointed otherwise",
        checked(holed(Stream().add(10, *first())), 30, ("a", "", FOUR, ["T"])).rows(),
        {version(10, 20, "gap"), version(30, None, begun="checkpoint", write=4)},
    ),
    Case(
        "over a hole, checkpointed in another epoch",
        checked(holed(Stream().add(10, *first())), 30, ("a", "", EIGHT, ["T"]), epoch=3).rows(),
        {version(10, 20, "gap"), version(30, None, begun="checkpoint", epoch=3)},
    ),
    Case(
        "over a hole, not checkpointed",
        checked(holed(Stream().add(10, *first())), 30).rows(),
        {version(10, 20, "gap")},
    ),
    Case(
        "a hole, then a change of what was known",
        holed(Stream().add(10, *first())).add(30, change("wipe", EIGHT, READ_ONLY)).rows(),
        {version(10, 30, "wipe"), version(30, None, begun="wipe", perm=4)},
    ),
    Case(
        "a hole, then a change of something else",
        holed(Stream().add(10, *first())).add(30, change("wipe", FOUR, READ_ONLY)).rows(),
        {version(10, 20, "gap"), version(30, None, begun="wipe", perm=4)},
    ),
    Case(
        "a hole, then a new epoch",
        holed(Stream().add(10, *first())).add(30, *first(3)).rows(),
        {version(10, 20, "gap"), version(30, None, epoch=3)},
    ),
    Case(
        "a hole, checkpointed, then a new epoch",
        checked(holed(Stream().add(10, *first())), 30, ("a", "", EIGHT, ["T"])).add(40, *first(3)).rows(),
        {version(10, 40, "epoch"), version(40, None, epoch=3)},
    ),
    Case(
        "a new incarnation",
        Stream().add(10, *first()).rows() + Stream(50).add(50, started(), *first()).rows(),
        {version(10, 50, "incarnation"), version(50, None)},
    ),
    Case(
        "a new incarnation over the same tables",
        Stream().add(10, *first()).rows()
        + checked(Stream(50).add(50, started("stream_lost")), 51, ("a", "", EIGHT, ["T"])).rows(),
        {version(10, 50, "incarnation"), version(51, None, begun="checkpoint")},
    ),
]
Rows = dict[str, list[dict[str, object]]]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Rows:
    rows: Rows = {}
    for row in version_rows(clean(landing(spark, CASES)).localCheckpoint()).collect():
        rows.setdefault(row.namespace, []).append(row.asDict(recursive=True))
    return rows


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_edges(found: Rows, case: Case) -> None:
    rows = [seconds([row[name] for name in COLUMNS], 5, 7) for row in found[case.id]]
    assert set(rows) == case.expected
    assert len(rows) == len(case.expected)


def test_each_row_says_its_folder_and_those_of_a_partition_are_in_the_order_of_files(
    spark: SparkSession,
) -> None:
    made = route_versions(clean(landing(spark, CASES)).localCheckpoint())
    rows = made.of.mapInArrow(made.step, ROUTE_VERSIONS.stored_schema)
    folders = {one.name: F.expr(one.sql).alias(f"{one.name}_by_sql") for one in ROUTE_VERSIONS.partitions}
    placed = rows.select("*", *folders.values(), F.spark_partition_id().alias("partition")).collect()
    assert {row.month for row in placed} > {"open"}
    for row in placed:
        assert [row[name] for name in folders] == [row[f"{name}_by_sql"] for name in folders]
    for one in {row.partition for row in placed}:
        places = [
            (row.to_ms is None, row.bucket, row.month, row.topic) for row in placed if row.partition == one
        ]
        assert places == sorted(places)


@pytest.mark.parametrize(
    "at_ms", [0, 1, -1, 951_782_399_999, 951_782_400_000, 1_767_225_600_000, 253_402_300_799_999]
)
def test_the_month_of_a_time(spark: SparkSession, at_ms: int) -> None:
    (row,) = spark.sql(
        f"select {ROUTE_VERSIONS.partitions[1].sql} as month from (select {at_ms}L as to_ms)"
    ).collect()
    assert months(pa.array([at_ms, None], pa.int64())).to_pylist() == [row.month, "open"]


def test_the_actor_of_a_version(found: Rows) -> None:
    rows = sorted(found["changed"], key=lambda row: row["from_ms"])  # type: ignore[arg-type, return-value]
    assert [row["from_op"] for row in rows] == ["op-1", "op-3"]
    assert rows[0]["to_id"] == rows[1]["from_id"] == {"ms": rows[1]["from_ms"], "n": 0}
    assert rows[0]["to_actor"] == rows[1]["from_actor"]
