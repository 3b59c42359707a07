"""How regular heartbeats are, and the timeout that this suggests."""

import random
from itertools import accumulate, chain
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline.reports.timeouts import timeouts
from mqpipeline.schemas import BROKER_SESSIONS, HEARTBEATS
from tests.mqpipeline.reports.literal import Reported, cases, ms, reported, session, window
from tests.mqpipeline.rows import frame

Rows = list[dict[str, Any]]
END = 100_000


def _heartbeats(broker: str, *gaps: float, begin: float = 0, **more: Any) -> Rows:
    """Heartbeats with these gaps between them, the first at `begin`."""
    member = {"cluster": "c1", "broker": broker, "broker_id": 0, "addr": f"{broker}:10911", "code": 322}
    at = accumulate(gaps, initial=begin)
    return [{"id_ms": ms(when), "id_n": i, **member, **more} for i, when in enumerate(at)]


SMALL: dict[str, tuple[Rows, Rows, tuple[Any, ...] | None]] = {
    "two gaps": ([session("a", 0)], _heartbeats("a", 30, 31), (2, 30_000, 31_000, 0)),
    "one heartbeat": ([session("a", 0)], _heartbeats("a"), None),
    "heartbeats of a slave are its own": (
        [session("a", 0), session("a", 0, broker_id=1)],
        _heartbeats("a", 30, 30) + _heartbeats("a", 30, 30, begin=7, broker_id=1),
        (4, 30_000, 30_000, 0),
    ),
    "and those of another address": (
        [session("a", 0, 80, "replaced"), session("a", 80, addr="z")],
        _heartbeats("a", 30, 30) + _heartbeats("a", 30, 30, begin=80, addr="z"),
        (4, 30_000, 30_000, 0),
    ),
    "a stay ends, another begins with a heartbeat": (
        [session("a", 0, 180, "expired"), session("a", 500)],
        _heartbeats("a", 30, 30) + _heartbeats("a", 31, begin=500),
        (3, 30_000, 31_000, 0),
    ),
    "another begins without one": (
        [session("a", 0, 180, "expired"), session("a", 490)],
        _heartbeats("a", 30, 30) + _heartbeats("a", 31, begin=500),
        (3, 30_000, 31_000, 0),
    ),
    "a gap is of the window that it ends in": (
        [session("a", -100)],
        _heartbeats("a", 30, 32, 31, begin=-45),
        (2, 31_000, 32_000, 0),
    ),
    "a gap that ends after it": ([session("a", 0)], _heartbeats("a", 30, begin=END - 30), None),
    "missed heartbeats": (
        [session("a", 0)],
        _heartbeats("a", 30, 30, 30, 30, 44, 45, 75, 101),
        (8, 30_000, 101_000, 1 + 2 + 2),
    ),
    "a heartbeat between two is no heartbeat missed": (
        [session("a", 0)],
        _heartbeats("a", 30, 30, 30, 30, 10, 20),
        (6, 30_000, 30_000, 0),
    ),
    "an unknown session": ([], _heartbeats("a", 30), (1, 30_000, 30_000, 0)),
}
MANY: dict[str, tuple[list[float], float | None]] = {
    "the worked example": ([30.0] * 990 + [30.5] * 8 + [61.0] * 2, 120_000),
    "a few long ones decide": ([30.0] * 998 + [200.0] * 2, 300_000),
    "not under ten seconds": ([1.0] * 1000, 10_000),
    "not over ten minutes": ([200.0] * 1000, 600_000),
    "too few": ([30.0] * 999, None),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Reported:
    sessions = {name: rows for name, (rows, *_) in SMALL.items()} | {name: [session("a", 0)] for name in MANY}
    heartbeats = {name: rows for name, (_, rows, _) in SMALL.items()}
    heartbeats |= {name: _heartbeats("a", *gaps) for name, (gaps, _) in MANY.items()}
    report = timeouts(
        frame(spark, HEARTBEATS, cases(heartbeats)),
        frame(spark, BROKER_SESSIONS, cases(sessions)),
        [window(0, END), window(0, END * 10, "day")],
        ms(END),
    )
    quantiles = ("p95_ms", "p99_ms", "p999_ms")
    return reported(report, "gaps", "p50_ms", "max_ms", "missed", *quantiles, "suggested_timeout_ms")


@pytest.mark.parametrize("name", SMALL)
def test_gaps(name: str, found: Reported) -> None:
    of_broker = found.get((name, "1h", "broker:c1:a"), ())
    assert of_broker == found.get((name, "1h", "cluster:c1"), ())
    assert of_broker[:4] == (SMALL[name][2] or ())


@pytest.mark.parametrize("name", MANY)
def test_the_suggested_timeout(name: str, found: Reported) -> None:
    assert found[name, "day", "broker:c1:a"][-1] == MANY[name][1]


def test_quantiles_of_the_worked_example(found: Reported) -> None:
    gaps, p50, longest, missed, _, p99, p999, _ = found["the worked example", "day", "cluster:c1"]
    assert (gaps, p50, p99, p999, longest, missed) == (1000, 30_000, 30_000, 61_000, 61_000, 2)


def test_a_cluster_has_the_gaps_of_its_brokers(spark: SparkSession) -> None:
    """By nearest rank, against a sorted list."""
    chance = random.Random(6)
    gaps = {
        broker: [float(chance.randint(1, 40)) for _ in range(50 + i * 7)] for i, broker in enumerate("abc")
    }
    heartbeats = [
        row | {"namespace": "ns"} for broker, each in gaps.items() for row in _heartbeats(broker, *each)
    ]
    sessions = [session(broker, 0) for broker in gaps]
    report = timeouts(
        frame(spark, HEARTBEATS, heartbeats), frame(spark, BROKER_SESSIONS, sessions), [window(0, END)], 0
    )
    found = reported(report, "p50_ms", "p95_ms", "p99_ms", "p999_ms")
    units = {f"broker:c1:{broker}": each for broker, each in gaps.items()} | {
        "cluster:c1": list(chain.from_iterable(gaps.values()))
    }
    for unit, sample in units.items():
        ranked = sorted(sample)
        expected = [1000 * ranked[-(-len(ranked) * rank // 1000) - 1] for rank in (500, 950, 990, 999)]
        assert list(found["ns", "1h", unit]) == expected
