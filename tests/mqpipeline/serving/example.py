"""The results of an hour: two brokers that fell, one that was replaced (all figures add up)."""

import re
from collections.abc import Mapping
from typing import Any

from mqpipeline.reports.catalogue import (
    AVAILABILITY,
    CHURN,
    CHURN_TOPICS,
    CONFLICTS,
    DETECT,
    FLAP,
    INCIDENTS,
    REPAIR,
    SKEW,
    SLO,
    TIMEOUTS,
)
from mqpipeline.schemas import Table
from mqpipeline.serving.results import BROKER_STATES, CHURN_HOURS, Results, Run

W0 = 1_767_225_600_000
"""2026-01-01 00:00 UTC"""
AS_OF = W0 + 3_600_000
RUN = Run(run="r1", as_of_ms=AS_OF, took_ms=5_300, events=14, holes=0, phantoms=0, rejected=0)
LENGTHS = {"1h": 3_600_000, "24h": 86_400_000, "7d": 7 * 86_400_000, "30d": 30 * 86_400_000}
Literal = Mapping[str, Any]


def columns(table: Table) -> list[str]:
    """Their names, without a Spark session to ask."""
    outermost = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", table.columns))
    return [column.split()[0] for column in outermost.split(",")]


def row(table: Table, unit: str, window: str = "1h", **values: Any) -> Literal:
    """A row of a report, of a rolling window unless it says from when to when; what it leaves out is null."""
    bounds = {
        "from_ms": AS_OF - LENGTHS.get(window, 0),
        "to_ms": AS_OF,
        "as_of": AS_OF,
        "provisional": True,
    }
    assert set(values) <= set(columns(table)) | {"of"}, values
    nothing = dict.fromkeys(columns(table)[1:])
    return {**nothing, "window": window, **bounds, "unit": unit, "of": 1, **values}


def availability(unit: str, seconds: tuple[int, int, int, int], outages: int, **values: Any) -> Literal:
    """Of seconds up, down, planned, unknown."""
    up, down, planned, unknown = (1000 * one for one in seconds)
    return row(
        AVAILABILITY.table,
        unit,
        **{
            "up_ms": up,
            "down_ms": down,
            "planned_ms": planned,
            "unknown_ms": unknown,
            "availability": up / (up + down) if up + down else None,
            "outages": outages,
            "mtbf_ms": up / outages if outages else None,
            "mttr_ms": down / outages if outages else None,
        }
        | values,
    )


DOWN_MS = {"a": 540_000, "c": 300_000}


def state(broker: str, name: str, from_s: int, to_s: int, cluster: str = "c1") -> Literal:
    return {
        "cluster": cluster,
        "broker": broker,
        "state": name,
        "from_ms": W0 + 1000 * from_s,
        "to_ms": W0 + 1000 * to_s,
        "down_ms": DOWN_MS.get(broker, 0),
        "of": 3,
    }


def churn(cause: str, acts: int, pairs: int) -> Literal:
    return row(CHURN.table, f"c1:{cause}", cluster="c1", cause=cause, acts=acts, pairs=pairs)


def churn_hour(cause: str, acts: int, pairs: int, hour: int = 0) -> Literal:
    return {"from_ms": W0 + hour * 3_600_000, "cause": cause, "acts": acts, "pairs": pairs}


CAUSES = {
    "first": (4, 5),
    "expired": (2, 3),
    "lost": (1, 1),
    "unregistered": (1, 1),
    "wipe": (1, 1),
    "restore": (1, 1),
}
TABLES: dict[str, tuple[Literal, ...]] = {
    AVAILABILITY.table.name: (
        availability("cluster:c1", (7860, 840, 300, 1800), 3),
        availability("broker:c1:c", (1500, 300, 0, 1800), 1, worst={"5m": 0.0}, of=3),
        availability("broker:c1:a", (3060, 540, 0, 0), 2, worst={"5m": 0.0}, of=3),
        availability("broker:c1:b", (3300, 0, 300, 0), 0, worst={"5m": 1.0}, of=3),
        availability("topic:T2", (1500, 300, 0, 1800), 1, weighted=1500 / 1800, of=2),
        availability("topic:T1", (3600, 0, 0, 0), 0, weighted=0.904, of=2),
        availability(
            "cluster:c1",
            (7860, 840, 300, 1800),
            3,
            window="day",
            from_ms=W0,
            to_ms=W0 + 86_400_000,
        ),
        availability("broker:c1:a", (3060, 540, 0, 0), 2, window="day", from_ms=W0, to_ms=W0 + 86_400_000),
        availability(
            "cluster:c1", (7860, 840, 300, 1800), 3, window="month", from_ms=W0, to_ms=W0 + 31 * 86_400_000
        ),
    ),
    REPAIR.table.name: (
        row(REPAIR.table, "cluster:c1", outages=3, n_open=1, p50_ms=480_000.0),
        row(
            REPAIR.table,
            "broker:c1:a",
            outages=2,
            n_open=0,
            p50_ms=60_000.0,
            p90_ms=480_000.0,
            p95_ms=480_000.0,
        ),
    ),
    DETECT.table.name: (
        row(
            DETECT.table,
            "cluster:c1",
            n=3,
            p50_ms=120_000.0,
            p95_ms=120_000.0,
            p99_ms=120_000.0,
            max_ms=120_000.0,
            lower_p50_ms=90_000.0,
            without_last_seen=0,
            censored=0,
            record_delay_p95_ms=3_400.0,
            record_delay_max_ms=3_400.0,
        ),
    ),
    SLO.table.name: (
        row(
            SLO.table,
            "cluster:c1",
            slo=0.999,
            budget_ms=8_700.0,
            spent_ms=840_000.0,
            remaining=-95.5517,
            burn={"5m": 333.33, "30m": 144.44, "1h": 96.55},
            alerts=["14.4"],
        ),
    ),
    FLAP.table.name: (
        row(FLAP.table, "slot:c1:c:0", score=793.7, flapping=False, episodes=0, of=3),
        row(FLAP.table, "slot:c1:b:0", score=565.0, flapping=False, episodes=0, of=3),
        row(FLAP.table, "slot:c1:a:0", score=373.4, flapping=False, episodes=0, of=3),
    ),
    CHURN.table.name: tuple(churn(cause, *counts) for cause, counts in CAUSES.items()),
    CHURN_HOURS: tuple(churn_hour(cause, *counts) for cause, counts in sorted(CAUSES.items())),
    CHURN_TOPICS.table.name: (
        row(CHURN_TOPICS.table, "topic:T1", changes=9, of=2),
        row(CHURN_TOPICS.table, "topic:T2", changes=2, of=2),
    ),
    SKEW.table.name: (
        row(
            SKEW.table,
            "cluster:c1",
            queues_max_to_mean=1.8,
            queues_gini=0.311111,
            topics_max_to_mean=1.5,
            topics_gini=0.166667,
            brokers=3,
        ),
        row(SKEW.table, "topic:T1", queues_max_to_mean=1.5, queues_gini=0.222222, brokers=3),
    ),
    CONFLICTS.table.name: (
        row(
            CONFLICTS.table,
            "slot:c1:a:0:state_version",
            type="state_version",
            count=2,
            last_ms=W0 + 700_000,
            detail='{"addr":"127.0.1.9:10911","holder":{"addr":"127.0.1.1:10911"},"action":"refused"}',
        ),
    ),
    TIMEOUTS.table.name: (
        row(
            TIMEOUTS.table,
            "cluster:c1",
            gaps=1000,
            p50_ms=30_000.0,
            p95_ms=30_000.0,
            p99_ms=30_000.0,
            p999_ms=61_000.0,
            max_ms=61_000.0,
            missed=2,
            suggested_timeout_ms=120_000.0,
        ),
    ),
    INCIDENTS.table.name: (
        {
            "type": "mass_expiry",
            "start_ms": W0 + 1_920_000,
            "key": "",
            "end_ms": W0 + 1_951_000,
            "members": 4,
            "share": 0.2,
            "clusters": ["c1"],
            "causes": {"expired": 4},
            "restored_ms": None,
            "ids": [{"ms": W0 + 1_923_400, "n": 0}],
            "of": 1,
        },
    ),
    BROKER_STATES: (
        state("a", "UP", -900, 600),
        state("a", "DOWN", 600, 660),
        state("a", "UP", 660, 1920),
        state("a", "DOWN", 1920, 2400),
        state("a", "UP", 2400, 3600),
        state("c", "UNKNOWN", -900, 1800),
        state("c", "UP", 1800, 3300),
        state("c", "DOWN", 3300, 3600),
        state("b", "UP", -900, 1200),
        state("b", "PLANNED", 1200, 1500),
        state("b", "UP", 1500, 3600),
    ),
}


def results(**instead: tuple[Literal, ...]) -> Results:
    """The example, tables replaced by name."""
    return Results(AS_OF, TABLES | instead)
