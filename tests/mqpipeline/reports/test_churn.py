"""How much changes."""

import random
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline.reports.churn import churn
from mqpipeline.reports.churn_topics import churn_topics
from mqpipeline.schemas import BROKER_VERSIONS, ROUTE_VERSIONS
from tests.mqpipeline.reports import example
from tests.mqpipeline.reports.literal import (
    Log,
    Reported,
    broker_version,
    cases,
    clean,
    reported,
    version,
    window,
)
from tests.mqpipeline.rows import frame

Operations = dict[str, tuple[int, int]]
NEW = ("", "8,8,6,0")


def _row(broker: str, *topics: str, change: tuple[str, str] = NEW) -> tuple[Any, ...]:
    return (broker, *change, list(topics))


OPERATIONS: dict[str, tuple[Log, Operations]] = {
    "a registration and its topics": (
        Log().member("registered", "first", 1, "a", "x").topics("register", 1, _row("a", "T1", "T2"), op="x"),
        {"c1:first": (1, 2)},
    ),
    "topics that come with later scripts": (
        Log()
        .member("registered", "first", 1, "a", "x")
        .topics("register", 1, _row("a", "T1"), op="x")
        .topics("register", 2, _row("a", "T2"), op="x")
        .member("updated", "register", 2, "a", "x", fields={"dv": "0:1:2"}),
        {"c1:first": (1, 2)},
    ),
    "a master that changes some topics": (
        Log()
        .member("updated", "register", 1, "a", "x", fields={"dv": "0:1:2"})
        .topics("register", 1, _row("a", "T1"), op="x"),
        {"c1:register": (1, 1)},
    ),
    "a new zone and some topics": (
        Log()
        .member("updated", "register", 1, "a", "x", fields={"zone": "z"})
        .topics("register", 1, _row("a", "T1"), op="x"),
        {"c1:register": (1, 1)},
    ),
    "acting, filters": (
        Log()
        .member("updated", "register", 1, "a", fields={"acting": "1"})
        .member("updated", "register", 2, "a", fields={"filters": "[]"}),
        {"c1:register": (2, 0)},
    ),
    "only what no route shows": (
        Log()
        .member("updated", "register", 1, "a", fields={"dv": "0:1:2"})
        .member("updated", "register", 1, "a", fields={"ha": "h", "timeout_ms": "9"})
        .event("kv_changed", "put", 2, fields={"kv_ns": "other", "key": "k"})
        .event("conflict_seen", "two_names", 3, "a")
        .event("checkpoint", "request", 4, "a", rows=[_row("a", "T1")])
        .event("settings_changed", "update", 5)
        .event("hold_changed", "outage", 6)
        .event("stream_started", "empty_store", 7),
        {},
    ),
    "the order of a topic": (
        Log().event("kv_changed", "put", 2, fields={"kv_ns": "ORDER_TOPIC_CONFIG", "key": "T1"}),
        {":put": (1, 0)},
    ),
    "a moved address": (
        Log()
        .member("removed", "replaced", 1, "a", "x", topics=3)
        .member("registered", "takeover", 1, "a", "x", topics=3)
        .topics("register", 1, _row("a", "T1"), op="x"),
        {"c1:replaced": (1, 3), "c1:takeover": (1, 4)},
    ),
    "a run of the expiry job": (
        Log()
        .member("removed", "expired", 1, "a", "x", topics=3)
        .member("removed", "expired", 1, "a", "x", topics=3, broker_id=1)
        .member("removed", "expired", 1, "b", "x", topics=1),
        {"c1:expired": (3, 7)},
    ),
    "the write bit cleared after a removal, in slices": (
        Log()
        .member("removed", "lost", 1, "a", "x", topics=3)
        .topics("acting", 2, _row("a", "T1"), op="x")
        .topics("acting", 3, _row("a", "T2", "T3"), op="x"),
        {"c1:lost": (1, 3), "c1:acting": (1, 3)},
    ),
    "a topic deleted from two brokers": (
        Log().topics("topic_delete", 1, _row("a", "T1"), _row("b", "T1")),
        {"c1:topic_delete": (1, 2)},
    ),
    "a topic deleted from two clusters": (
        Log().topics("topic_delete", 1, _row("a", "T1"), _row("d", "T1")),
        {"c1:topic_delete": (1, 1), "c2:topic_delete": (1, 1)},
    ),
    "deletions from a broker before and after it moves to another cluster": (
        Log()
        .topics("topic_delete", 99, _row("a", "T1"), _row("m", "T1"))
        .topics("topic_delete", 101, _row("a", "T2"), _row("m", "T2")),
        {"c1:topic_delete": (2, 3), "c2:topic_delete": (1, 1)},
    ),
    "a deletion from a broker that is known later only": (
        Log().topics("topic_delete", 1, _row("a", "T1"), _row("late", "T1")),
        {"c1:topic_delete": (1, 1), "c2:topic_delete": (1, 1)},
    ),
    "a drain": (
        Log().event("drain_changed", "drain", 1, "d", topics=5, cluster=None),
        {"c2:drain": (1, 5)},
    ),
    "a mirrored broker": (
        Log().member("registered", "mirror", 1, "a", "x").topics("mirror", 1, _row("a", "T1"), op="x"),
        {"c1:mirror": (1, 1)},
    ),
    "a mirrored broker that is drained": (
        Log()
        .member("registered", "mirror", 1, "a", "x")
        .topics("mirror", 1, _row("a", "T1"), op="x")
        .event("drain_changed", "mirror", 1, "a", "x", topics=1),
        {"c1:mirror": (2, 2)},
    ),
    "static topics": (
        Log().event("mappings_changed", "register", 1, "a", fields={"rows": '[["a","T1",null,{"x":1}]]'}),
        {"c1:register": (1, 0)},
    ),
    "operations without a name": (
        Log().topics("wipe", 1, _row("a", "T1"), op=None).topics("wipe", 1, _row("a", "T1"), op=None),
        {"c1:wipe": (2, 2)},
    ),
    "before the window, and as it ends": (
        Log().member("removed", "lost", -1, "a").member("removed", "lost", 3600, "a"),
        {},
    ),
    "recorded after the window's end, but no answer since": (
        Log().member("removed", "expired", 3601, "a", topics=1, effective_ms=3_599_000),
        {"c1:expired": (1, 1)},
    ),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Reported:
    rows = {name: log.rows for name, (log, _) in OPERATIONS.items()}
    for row in rows["operations without a name"]:
        row["op"] = None
    known = [broker_version("a", 0), broker_version("b", 0), broker_version("d", 0, cluster="c2")]
    known += [broker_version("m", 0, 100), broker_version("m", 100, cluster="c2")]
    known += [broker_version("late", 200, cluster="c2")]
    versions = dict.fromkeys(OPERATIONS, known) | {"example": example.BROKER_VERSIONS}
    report = churn(
        clean(spark, cases(rows | {"example": example.EVENTS})),
        frame(spark, BROKER_VERSIONS, cases(versions)),
        [window(0, 3600), window(0, 7200, "day")],
        (0, 7_200_000),
        as_of=5_400_000,
    )
    return reported(report.where("window = '1h'"), "acts", "pairs") | reported(
        report.where("window = 'hour'")
        .selectExpr("*", "from_ms as begin")
        .drop("window")
        .selectExpr("concat('hour ', begin) as window", "*"),
        "acts",
        "pairs",
        "to_ms",
    )


def _operations(found: Reported, name: str) -> Operations:
    return {key[2]: value[:2] for key, value in found.items() if key[:2] == (name, "1h")}


@pytest.mark.parametrize("name", OPERATIONS)
def test_acts_and_pairs(name: str, found: Reported) -> None:
    assert _operations(found, name) == OPERATIONS[name][1]


def test_the_worked_example(found: Reported) -> None:
    assert _operations(found, "example") == {
        "c1:first": (4, 5),
        "c1:lost": (1, 1),
        "c1:unregistered": (1, 1),
        "c1:expired": (2, 3),
        "c1:wipe": (1, 1),
        "c1:restore": (1, 1),
    }


def test_each_hour(found: Reported) -> None:
    """The hour that `as_of` lies in ends there; the hour before the windows is none of theirs."""
    name = "before the window, and as it ends"
    hours = {key[1:]: value for key, value in found.items() if key[0] == name}
    assert hours == {("hour 3600000", "c1:lost"): (1, 0, 5_400_000)}
    assert found["example", "hour 0", "c1:first"] == (4, 5, 3_600_000)


TOPICS: dict[str, tuple[Log, list[dict[str, Any]], dict[str, int]]] = {
    "a registration, whatever it holds": (
        Log().member("registered", "first", 1, "a", "x").topics("register", 1, _row("a", "T1", "T2"), op="x"),
        [version("T1", "a", "8,8,6,0", 1), version("T2", "a", "8,8,6,0", 1)],
        {"T1": 1, "T2": 1},
    ),
    "a topic of it that comes later": (
        Log()
        .member("registered", "first", 1, "a", "x")
        .topics("register", 1, _row("a", "T1"), op="x")
        .topics("register", 2, _row("a", "T2"), op="x"),
        [version("T1", "a", "8,8,6,0", 1), version("T2", "a", "8,8,6,0", 2)],
        {"T1": 1, "T2": 1},
    ),
    "a topic that goes with it": (
        Log()
        .member("registered", "join", 1, "a", "x")
        .topics("register", 1, _row("a", "T1", change=("8,8,6,0", "")), op="x"),
        [version("T1", "a", "8,8,6,0", 0, 1), version("T2", "a", "8,8,6,0", 0)],
        {"T1": 1, "T2": 1},
    ),
    "a topic that changes with it": (
        Log()
        .member("registered", "join", 1, "a", "x")
        .topics("register", 1, _row("a", "T1", change=("8,8,6,0", "8,8,4,0")), op="x"),
        [version("T1", "a", "8,8,6,0", 0, 1), version("T1", "a", "8,8,4,0", 1)],
        {"T1": 1},
    ),
    "a new zone, and a topic in a later script": (
        Log()
        .member("updated", "register", 5, "a", "x", fields={"zone": "z"})
        .topics("register", 6, _row("a", "T2"), op="x"),
        [version("T1", "a", "8,8,6,0", 0), version("T2", "a", "8,8,6,0", 6)],
        {"T1": 1, "T2": 1},
    ),
    "a removal, and the write bit cleared after it": (
        Log()
        .member("removed", "lost", 5, "a", "x")
        .topics("acting", 5, _row("a", "T1", change=("8,8,6,0", "8,8,4,0")), op="x"),
        [
            version("T1", "a", "8,8,6,0", 0, 5),
            version("T1", "a", "8,8,4,0", 5),
            version("T2", "a", "8,8,4,0", 0),
        ],
        {"T1": 2, "T2": 1},
    ),
    "a removal, of what the broker held": (
        Log().member("removed", "lost", 5, "a"),
        [
            version("T1", "a", "8,8,6,0", 0),
            version("T2", "a", "8,8,6,0", 5),
            version("T3", "a", "8,8,6,0", 0, 5),
            version("T4", "b", "8,8,6,0", 0),
            version("T5", "a", "8,8,6,0", 6),
        ],
        {"T1": 1, "T2": 1},
    ),
    "on any of its brokers": (
        Log().member("removed", "lost", 5, "a").member("removed", "lost", 6, "b"),
        [version("T1", "a", "8,8,6,0", 0), version("T1", "b", "8,8,6,0", 0)],
        {"T1": 2},
    ),
    "a change of topics, of those it names": (
        Log().topics("wipe", 5, _row("a", "T1")),
        [version("T1", "a", "8,8,6,0", 0), version("T2", "a", "8,8,6,0", 0)],
        {"T1": 1},
    ),
    "on several brokers at once": (
        Log().topics("topic_delete", 5, _row("a", "T1"), _row("b", "T1")),
        [version("T1", "a", "8,8,6,0", 0, 5)],
        {"T1": 1},
    ),
    "its order, its static queues": (
        Log()
        .event("kv_changed", "put", 5, fields={"kv_ns": "ORDER_TOPIC_CONFIG", "key": "T1"})
        .event("mappings_changed", "register", 6, "a", fields={"rows": '[["a","T1",null,{"x":1}]]'}),
        [version("T1", "a", "8,8,6,0", 0), version("T2", "a", "8,8,6,0", 0)],
        {"T1": 2},
    ),
    "what cannot be read": (
        Log()
        .event("mappings_changed", "register", 5, "a", fields={"rows": '[["a"],["a",'})
        .event("mappings_changed", "register", 5, "a", fields={"rows": '[["a"],["a","T1",null,1]]'})
        .event("kv_changed", "put", 5, fields={"kv_ns": "ORDER_TOPIC_CONFIG"}),
        [],
        {"T1": 1},
    ),
    "static queues that come with a new zone": (
        Log()
        .member("updated", "register", 5, "a", "x", fields={"zone": "z"})
        .event("mappings_changed", "register", 5, "a", "x", fields={"rows": '[["a","T1",null,{"x":1}]]'}),
        [version("T1", "a", "8,8,6,0", 0), version("T2", "a", "8,8,6,0", 0)],
        {"T1": 1, "T2": 1},
    ),
    "a drain, and its end": (
        Log().event("drain_changed", "drain", 5, "a").event("drain_changed", "undrain", 7, "a"),
        [version("T1", "a", "8,8,6,0", 0), version("T2", "a", "8,8,6,0", 6)],
        {"T1": 2, "T2": 1},
    ),
    "outside the window": (
        Log().member("removed", "lost", -5, "a").member("removed", "lost", 3600, "a"),
        [version("T1", "a", "8,8,6,0", -10)],
        {},
    ),
}


@pytest.fixture(scope="module")
def found_topics(spark: SparkSession) -> Reported:
    events = {name: log.rows for name, (log, *_) in TOPICS.items()} | {"example": example.EVENTS}
    versions = {name: rows for name, (_, rows, _) in TOPICS.items()} | {"example": example.ROUTE_VERSIONS}
    routes = frame(spark, ROUTE_VERSIONS, cases(versions))
    return reported(churn_topics(clean(spark, cases(events)), routes, [example.WINDOW], 0), "changes")


def _changes(found: Reported, name: str) -> dict[str, int]:
    return {key[2].removeprefix("topic:"): value[0] for key, value in found.items() if key[0] == name}


@pytest.mark.parametrize("name", TOPICS)
def test_changes_of_a_topic(name: str, found_topics: Reported) -> None:
    assert _changes(found_topics, name) == TOPICS[name][2]


def test_topics_of_the_worked_example(found_topics: Reported) -> None:
    assert _changes(found_topics, "example") == {"T1": 10, "T2": 2}


def test_as_counted_one_by_one(spark: SparkSession) -> None:
    """Brokers come and go, topics are held and dropped: each change asked of each topic in turn."""
    chance = random.Random(6)
    log, versions = Log(), []
    for _ in range(150):
        log.member("removed", "lost", chance.randint(-100, 4000), chance.choice("abc"))
    for topic in ("T1", "T2", "T3"):
        for broker in "abc":
            at = sorted(chance.sample(range(-200, 4000), 20))
            versions += [version(topic, broker, "8,8,6,0", *held) for held in pairwise(at)]
            versions.append(version(topic, broker, "8,8,6,0", 4100))
    of = [window(0, 3600), window(1000, 1500, "day"), window(1500, 3600, "day")]
    routes = frame(
        spark, ROUTE_VERSIONS, [row for row in versions if chance.random() < 0.7 or row["to_ms"] is None]
    )
    kept = [row.asDict() for row in routes.collect()]
    report = churn_topics(clean(spark, log.rows), routes, of, 0)
    found = {(row.from_ms, row.to_ms, row.unit): row.changes for row in report.collect()}
    expected: dict[Any, int] = {}
    for row in log.rows:
        for held in kept:
            at, holds = row["id_ms"], row["broker"] == held["broker"]
            if holds and held["from_ms"] <= at < (held["to_ms"] or at + 1):
                for _, begin, end in of:
                    if begin <= at < end:
                        key = (begin, end, f"topic:{held['topic']}")
                        expected[key] = expected.get(key, 0) + 1
    assert found == expected
