"""How unevenly queues lie on brokers."""

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline.reports.skew import skew
from mqpipeline.schemas import BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS
from tests.mqpipeline.reports import example
from tests.mqpipeline.reports.literal import (
    Reported,
    broker_version,
    cases,
    ms,
    reported,
    session,
    version,
    window,
)
from tests.mqpipeline.rows import frame

Rows = list[dict[str, Any]]
AT = 100
TWO = [session("a", 0), session("b", 0)]
DRAIN = ("ops", "", None)

QUEUES: dict[str, tuple[Rows, Rows, Rows, tuple[Any, ...]]] = {
    "even": (TWO, [], [version("T1", b, "4,4,6,0", 0) for b in "ab"], (1, 0, 1, 0, 2)),
    "one broker": ([session("a", 0)], [], [version("T1", "a", "4,4,6,0", 0)], (1, 0, 1, 0, 1)),
    "all on one of two": (TWO, [], [version("T1", "a", "4,4,6,0", 0)], (2, 0.5, 2, 0.5, 2)),
    "none anywhere": (TWO, [], [], (None, None, None, None, 2)),
    "read queues do not count": (TWO, [], [version("T1", b, "9,4,6,0", 0) for b in "ab"], (1, 0, 1, 0, 2)),
    "nothing may be written": (TWO, [], [version("T1", b, "4,4,4,0", 0) for b in "ab"], (None,) * 4 + (2,)),
    "more topics, as many queues": (
        TWO,
        [],
        [version("T1", "a", "4,4,6,0", 0), *(version(f"T{i}", "b", "1,1,6,0", 0) for i in range(4))],
        (1, 0, 1.6, 0.3, 2),
    ),
    "a broker that is gone": (
        [session("a", 0), session("b", 0, AT, "lost")],
        [],
        [version("T1", b, "4,4,6,0", 0) for b in "ab"],
        (1, 0, 1, 0, 1),
    ),
    "a broker that goes in a moment": (
        [session("a", 0), session("b", 0, AT + 1, "lost")],
        [],
        [version("T1", "a", "4,4,6,0", 0)],
        (2, 0.5, 2, 0.5, 2),
    ),
    "a broker that comes now, with its topics": (
        [session("a", 0), session("b", AT)],
        [],
        [version("T1", "a", "4,4,6,0", 0), version("T1", "b", "4,4,6,0", AT)],
        (1, 0, 1, 0, 2),
    ),
    "a slave of it is there": (
        [session("a", 0), session("b", 0, broker_id=1), session("a", 0, broker_id=2)],
        [],
        [version("T1", b, "4,4,6,0", 0) for b in "ab"],
        (1, 0, 1, 0, 2),
    ),
    "queues of another epoch": (
        [session("a", 0), session("b", 50, epoch=2)],
        [],
        [version("T1", b, "4,4,6,0", 0) for b in "ab"],
        (2, 0.5, 2, 0.5, 2),
    ),
    "a version that ends now": (
        TWO,
        [],
        [version("T1", "a", "4,4,6,0", 0), version("T1", "b", "4,4,6,0", 0, AT)],
        (2, 0.5, 2, 0.5, 2),
    ),
    "a drained broker offers none": (
        TWO,
        [broker_version("a", 0), broker_version("b", 0, drain=DRAIN)],
        [version("T1", b, "4,4,6,0", 0) for b in "ab"],
        (2, 0.5, 2, 0.5, 2),
    ),
    "a drain whose time is over": (
        TWO,
        [broker_version("b", 0, drain=("ops", "", ms(AT)))],
        [version("T1", b, "4,4,6,0", 0) for b in "ab"],
        (1, 0, 1, 0, 2),
    ),
    "a drain that is over": (
        TWO,
        [broker_version("b", 0, AT, drain=DRAIN), broker_version("b", AT)],
        [version("T1", b, "4,4,6,0", 0) for b in "ab"],
        (1, 0, 1, 0, 2),
    ),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Reported:
    tables = zip(*(rows[:3] for rows in QUEUES.values()), strict=True)
    sessions, brokers, routes = (
        cases(dict(zip(QUEUES, table, strict=True)) | {"example": of_example})
        for table, of_example in zip(
            tables, (example.SESSIONS, example.BROKER_VERSIONS, example.ROUTE_VERSIONS), strict=True
        )
    )
    report = skew(
        frame(spark, BROKER_SESSIONS, sessions),
        frame(spark, BROKER_VERSIONS, brokers),
        frame(spark, ROUTE_VERSIONS, routes),
        [window(0, AT), window(-AT, AT, "day"), window(0, 1850, "example")],
        ms(3600),
    )
    return reported(
        report, "queues_max_to_mean", "queues_gini", "topics_max_to_mean", "topics_gini", "brokers", "from_ms"
    )


@pytest.mark.parametrize("name", QUEUES)
def test_skew_of_a_cluster(name: str, found: Reported) -> None:
    assert found[name, "1h", "cluster:c1"][:-1] == pytest.approx(QUEUES[name][3])


def test_skew_of_a_topic(found: Reported) -> None:
    """Over the brokers that show it; one of a topic makes no skew of topics."""
    assert found["all on one of two", "1h", "topic:T1"][:-1] == (1, 0, None, None, 1)
    assert found["a drained broker offers none", "1h", "topic:T1"][:-1] == (2, 0.5, None, None, 2)
    assert found["nothing may be written", "1h", "topic:T1"][:-1] == (None, None, None, None, 2)
    assert found["a slave of it is there", "1h", "topic:T1"][:-1] == (1, 0, None, None, 2)


def test_windows_that_end_together_say_the_same(found: Reported) -> None:
    name = "more topics, as many queues"
    assert found[name, "day", "cluster:c1"][:-1] == found[name, "1h", "cluster:c1"][:-1]
    assert found[name, "day", "cluster:c1"][-1] == -ms(AT)


def test_the_worked_example(found: Reported) -> None:
    """At 1850 a has 4, b 8, c 18."""
    assert found["example", "example", "cluster:c1"][:2] == pytest.approx((1.8, 0.311111), abs=1e-6)
    assert found["example", "example", "topic:T1"][:2] == pytest.approx((1.5, 8 * 2 / (3 * 24)))


def test_versions_are_looked_at_once(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """They are most of what there is; clusters and topics share what is shuffled of them."""
    sessions, brokers, routes = (
        frame(spark, table, []) for table in (BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS)
    )
    skew(sessions, brokers, routes, [window(0, AT)], ms(AT)).explain()
    shuffles = [line for line in capsys.readouterr().out.splitlines() if "REPARTITION_BY_NUM" in line]
    assert ["ReusedExchange" in line for line in shuffles] == [False, True]


def test_by_the_definition_and_whatever_the_scale(spark: SparkSession) -> None:
    """The mean difference of two brokers, over twice the mean: in [0, 1), and the same of ten times the queues."""
    chance = random.Random(6)
    samples = {f"s{i}": [chance.choice((0, 0, 1, 4, 8, 100)) for _ in range(1 + i % 7)] for i in range(60)}
    for name, queues in list(samples.items()):
        samples[f"{name} scaled"] = [10 * count for count in queues]
    brokers = {name: [f"b{i}" for i in range(len(queues))] for name, queues in samples.items()}
    routes = {
        name: [
            version("T", broker, f"1,{count},6,0", 0)
            for broker, count in zip(brokers[name], queues, strict=True)
            if count
        ]
        for name, queues in samples.items()
    }
    report = skew(
        frame(
            spark, BROKER_SESSIONS, cases({name: [session(b, 0) for b in of] for name, of in brokers.items()})
        ),
        frame(spark, BROKER_VERSIONS, []),
        frame(spark, ROUTE_VERSIONS, cases(routes)),
        [window(0, AT)],
        0,
    )
    found = reported(report, "queues_max_to_mean", "queues_gini")
    for name, queues in samples.items():
        total, n = sum(queues), len(queues)
        apart = sum(abs(x - y) for x in queues for y in queues)
        expected = (max(queues) * n / total, apart / (2 * n * total)) if total else (None, None)
        assert found[name, "1h", "cluster:c1"] == pytest.approx(expected)
        if total:
            assert 0 <= found[name, "1h", "cluster:c1"][1] < 1
            assert (
                found[name, "1h", "cluster:c1"]
                == found[f"{name.removesuffix(' scaled')}", "1h", "cluster:c1"]
            )
