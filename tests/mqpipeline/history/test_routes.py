"""Routes at an instant: the worked example, each rule of 105 as a topic of its own, and what is read for it."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyarrow.dataset import Dataset, dataset
from pyspark.sql import DataFrame, SparkSession

from mqpipeline.history.answer import answer_of
from mqpipeline.history.routes import Route, route_at, routes_at
from mqpipeline.history.tables import Tables, bucket_of
from mqpipeline.schemas import BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS, Table
from rocketmq_remoting.route import BrokerData, QueueData, TopicRouteData, decode_route
from tests.mqpipeline.history.example import S, attributes, frames, session, tables, version

AT = 100 * S


@pytest.fixture(scope="module")
def example(spark: SparkSession) -> Tables:
    return tables(spark)


def brokers(found: Iterable[Route]) -> list[str]:
    return sorted(route.broker for route in found)


@pytest.mark.parametrize(
    ("at", "as_recorded", "expected"),
    [
        pytest.param(1919.999, False, ["a", "b", "c"], id="until its lease ends"),
        pytest.param(1921, False, ["b", "c"], id="gone, though not recorded yet"),
        pytest.param(1921, True, ["a", "b", "c"], id="there until it was written"),
        pytest.param(1200, False, ["a"], id="gone from the instant it left at"),
    ],
)
def test_the_worked_example(example: Tables, at: float, as_recorded: bool, expected: list[str]) -> None:
    assert brokers(route_at(example, "T1", round(at * S), as_recorded=as_recorded)) == expected


def member(broker: str, number: int, start: float = 0, end: float | None = None, **more: Any) -> Any:
    addr = f"10.0.0.{number}:10911"
    return dict(session(broker, 1, start, end)) | {"broker_id": number, "addr": addr} | more


@pytest.fixture(scope="module")
def rules(spark: SparkSession) -> Tables:
    """A broker for each rule, with a topic of the same name."""
    slave = {"acting": True}
    sessions = [
        member("plain", 0),
        member("plain", 1),
        member("other epoch", 0),
        member("left", 0, 0, 100),
        member("comes", 0, 100),
        member("later", 0, 100.001),
        member("other inc", 0, inc=2),
        member("drained", 0),
        member("drain over", 0),
        member("acting", 2, **{}),
        member("acting", 3),
        member("writable", 2),
        member("not enabled", 2),
        member("taken over", 0, 0, 100),
        member("taken over", 0, 100, addr="10.0.0.9:10911"),
        member("twice", 0),
        member("twice", 0, 50, addr="10.0.0.9:10911"),
        member("unheard of", 1, cluster="c9"),
        member("elsewhere", 0, namespace="other"),
        member("sync", 2),
    ]
    held = [
        attributes("plain", 1, 0, 100, zone="old"),
        attributes("plain", 1, 100, zone="z1"),
        attributes("drained", 1, 0, drain=("alice", "why", None)),
        attributes("drain over", 1, 0, drain=("alice", "why", AT)),
        attributes("acting", 1, 0, **slave),
        attributes("writable", 1, 0, **slave),
        attributes("sync", 1, 0, **slave),
    ]
    read_only = "4,4,4,0"
    versions = [
        version("plain", "plain", 1, 0, "8,4,6,2"),
        version("plain", "plain", 1, 0, "1,1,6,0", 100),
        version("other epoch", "other epoch", 2, 0, "8,8,6,0"),
        version("left", "left", 1, 0, "8,8,6,0"),
        version("comes", "comes", 1, 0, "8,8,6,0"),
        version("later", "later", 1, 0, "8,8,6,0"),
        version("other inc", "other inc", 1, 0, "8,8,6,0"),
        version("drained", "drained", 1, 0, "8,8,7,0"),
        version("drain over", "drain over", 1, 0, "8,8,6,0"),
        version("acting", "acting", 1, 0, read_only),
        version("writable", "writable", 1, 0, "4,4,6,0"),
        version("not enabled", "not enabled", 1, 0, read_only),
        version("taken over", "taken over", 1, 0, "8,8,6,0"),
        version("twice", "twice", 1, 0, "8,8,6,0"),
        version("unheard of", "unheard of", 1, 0, "8,8,6,0"),
        version("elsewhere", "elsewhere", 1, 0, "8,8,6,0", namespace="other"),
        version("rmq_sys_SYNC_BROKER_MEMBER_sync", "sync", 1, 0, read_only),
    ]
    return tables(spark, sessions, held, versions)


def reported(found: Iterable[Route]) -> dict[str, Route]:
    routes = [*found]
    assert len({route.broker for route in routes}) == len(routes)
    return {route.broker: route for route in routes}


def test_each_rule(rules: Tables) -> None:
    rows = reported(routes_at(rules, AT, acting_master=True))
    addrs = {name: row.shown.addrs for name, row in rows.items()}
    assert addrs == {
        "plain": {0: "10.0.0.0:10911", 1: "10.0.0.1:10911"},
        "comes": {0: "10.0.0.0:10911"},
        "drained": {0: "10.0.0.0:10911"},
        "drain over": {0: "10.0.0.0:10911"},
        "acting": {0: "10.0.0.2:10911", 3: "10.0.0.3:10911"},
        "writable": {2: "10.0.0.2:10911"},
        "not enabled": {2: "10.0.0.2:10911"},
        "taken over": {0: "10.0.0.9:10911"},
        "twice": {0: "10.0.0.9:10911"},
        "unheard of": {1: "10.0.0.1:10911"},
        "sync": {2: "10.0.0.2:10911"},
    }
    assert {name: row.shown.perm for name, row in rows.items() if row.shown.perm != 6} == {
        "drained": 5,
        "acting": 4,
        "not enabled": 4,
        "sync": 4,
    }
    drain, plain = rows["drained"].drain, rows["plain"].shown
    assert (rows["drained"].stored_perm, drain and drain.owner) == (7, "alice")
    assert (plain.zone, plain.cluster, rows["unheard of"].shown.cluster) == ("z1", "c1", "c9")
    assert (plain.read_queues, plain.write_queues, plain.sys_flag) == (8, 4, 2)


def test_as_the_answer_of_105(rules: Tables) -> None:
    routes = [*route_at(rules, "acting", AT), *route_at(rules, "plain", AT)]
    body = json.dumps(answer_of(routes)).encode()
    assert decode_route(body) == TopicRouteData(
        broker_datas=(
            BrokerData("c1", "acting", {2: "10.0.0.2:10911", 3: "10.0.0.3:10911"}, True),
            BrokerData("c1", "plain", {0: "10.0.0.0:10911", 1: "10.0.0.1:10911"}, False, "z1"),
        ),
        queue_datas=(QueueData("acting", 4, 4, 4, 0), QueueData("plain", 8, 4, 6, 2)),
    )
    assert answer_of([]) is None


def test_a_topic_lies_in_the_bucket_that_the_table_says(spark: SparkSession) -> None:
    topics = ["T1", "%RETRY%grupo-ñ", "Заказы", "a" * 255]
    bucket = ROUTE_VERSIONS.partitions[0]
    rows = (
        spark.createDataFrame([(topic,) for topic in topics], "topic string").selectExpr(bucket.sql).collect()
    )
    assert [row[0] for row in rows] == [bucket_of(topic) for topic in topics]


def stored(frame: DataFrame, table: Table, folder: Path) -> Dataset:
    """As the warehouse keeps it."""
    names = [partition.name for partition in table.partitions]
    made = frame.selectExpr("*", *(f"{partition.sql} as {partition.name}" for partition in table.partitions))
    made.coalesce(1).write.partitionBy(*names).parquet(str(folder))
    return dataset(folder, partitioning="hive")


def test_only_one_bucket_and_no_older_month_is_read(spark: SparkSession, tmp_path: Path) -> None:
    day, month = 24 * 3600, 31 * 24 * 3600
    spoilt, topics = [version("T1", "a", 1, 0, "8,8,6,0", day)], ["T1"]
    topics += [next(f"T{i}" for i in range(2, 99) if bucket_of(f"T{i}") != bucket_of("T1"))]
    made = frames(
        spark,
        [session("a", 1, 0, day, "lost"), session("a", 2, 2 * month)],
        [attributes("a", 1, 0, day), attributes("a", 2, 2 * month)],
        [*spoilt, *(version(topic, "a", 2, 2 * month, "4,4,6,0", 3 * month) for topic in topics)],
    )
    names = (BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS)
    kept = [stored(frame, table, tmp_path / table.name) for frame, table in zip(made, names, strict=True)]
    old = [path for path in tmp_path.rglob("*.parquet") if "month=1970-01" in str(path)]
    others = list(tmp_path.rglob(f"bucket={bucket_of(topics[1])}/**/*.parquet"))
    assert len(old) == 3
    assert len(others) == 1
    for path in (*old, *others):
        path.write_bytes(b"not to be read")
    routes = route_at(Tables("default", *kept), "T1", 2 * month * S + 1)
    assert [(route.broker, route.shown.read_queues) for route in routes] == [("a", 4)]
