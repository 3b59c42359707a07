"""Which rows of the reports are served."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqpipeline.reports import catalogue
from mqpipeline.reports.catalogue import AVAILABILITY, CHURN, FLAP, INCIDENTS, LATEST, SKEW, UNITS
from mqpipeline.serving import results as served
from mqpipeline.serving.results import BROKER_STATES, CHURN_HOURS, DAY_MS, DAYS, WORST, Results, take
from tests.mqpipeline.rows import as_frame, frame
from tests.mqpipeline.serving.example import AS_OF, TABLES, W0

STATES = "namespace string, cluster string, broker string, state string, from_ms bigint, to_ms bigint"
HOUR_MS = 3_600_000


def at(window: str, unit: str, namespace: str = "n", **values: Any) -> dict[str, Any]:
    bounds = {"from_ms": W0, "to_ms": AS_OF, "as_of": AS_OF, "provisional": True}
    return {"namespace": namespace, "window": window, "unit": unit, **bounds, **values}


def a_day(back: int, unit: str, **values: Any) -> dict[str, Any]:
    """So many days before the last one."""
    start = W0 - back * DAY_MS
    return at("day", unit, from_ms=start, to_ms=min(start + DAY_MS, AS_OF), **values)


def units(found: Results, table: str, window: str | None = None) -> list[str]:
    return [row["unit"] for row in found.of(table, window)]


def test_the_worst_come_first_and_never_seen_comes_last(spark: SparkSession) -> None:
    rows = [
        at("1h", "topic:never", availability=None, down_ms=0),
        at("1h", "topic:whole", availability=1.0, down_ms=0),
        at("1h", "topic:b", availability=0.5, down_ms=10),
        at("1h", "topic:a", availability=0.5, down_ms=10),
        at("1h", "topic:longer", availability=0.5, down_ms=20),
        at("1h", "topic:other", "m", availability=0.1, down_ms=90),
        at("5m", "topic:no window of ours", availability=0.0, down_ms=1),
    ]
    found = take({AVAILABILITY.table.name: frame(spark, AVAILABILITY.table, rows)}, AS_OF)
    assert units(found["n"], AVAILABILITY.table.name) == [
        "topic:longer",
        "topic:a",
        "topic:b",
        "topic:whole",
        "topic:never",
    ]
    assert units(found["m"], AVAILABILITY.table.name) == ["topic:other"]
    assert {row["of"] for row in found["n"].of(AVAILABILITY.table.name)} == {5}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three topics, two brokers, one of them in days long past."""
    changed = served.CUTS[AVAILABILITY.table.name]._replace(
        most="case kind when 'topic' then 3 when 'broker' then 2 else 9 end"
    )
    monkeypatch.setitem(served.CUTS, AVAILABILITY.table.name, changed)
    monkeypatch.setattr(served, "WORST", 1)


def test_how_many_of_each_kind(spark: SparkSession, few: None) -> None:
    kinds = ("cluster:c", "broker:c:b", "topic:t")
    rows = [
        *(at("30d", f"{kind}{n}", availability=n / 10, down_ms=1) for kind in kinds for n in range(5)),
        *(at("24h", f"topic:t{n}", availability=1 - n / 10, down_ms=1) for n in range(4)),
        *(
            a_day(day, f"{kind}{n}", availability=0.5)
            for kind in kinds
            for n in range(5)
            for day in (0, 20, 40)
        ),
    ]
    found = take({AVAILABILITY.table.name: frame(spark, AVAILABILITY.table, rows)}, AS_OF)["n"]
    clusters = [f"cluster:c{n}" for n in range(5)]
    month = units(found, AVAILABILITY.table.name, "30d")
    assert sorted(month) == sorted(
        [*clusters, "broker:c:b0", "broker:c:b1", "topic:t0", "topic:t1", "topic:t2"]
    )
    assert units(found, AVAILABILITY.table.name, "24h") == ["topic:t3", "topic:t2", "topic:t1"]
    days = {back: set[str]() for back in (0, 20, 40)}
    for row in found.of(AVAILABILITY.table.name, "day"):
        days[(W0 - row["from_ms"]) // DAY_MS].add(row["unit"])
    assert days[0] == {*clusters, "broker:c:b0", "broker:c:b1", "topic:t0", "topic:t1", "topic:t2"}
    assert days[20] == {*clusters, "broker:c:b0"}, "clusters, and the worst broker of 30 days"
    assert days[40] == set()


def test_what_happened_last(spark: SparkSession) -> None:
    rows = [
        {"namespace": "n", "type": "mass_expiry", "start_ms": W0 + n, "key": "c1", "members": n}
        for n in range(LATEST + 5)
    ]
    found = take({INCIDENTS.table.name: frame(spark, INCIDENTS.table, rows)}, AS_OF)["n"].of(
        INCIDENTS.table.name
    )
    assert [row["members"] for row in found[:2]] == [LATEST + 4, LATEST + 3]
    assert (len(found), found[0]["of"]) == (LATEST, LATEST + 5)
    assert "namespace" not in found[0]


def test_churn_by_hour_is_of_all_clusters(spark: SparkSession) -> None:
    def hour(back: int, cluster: str, cause: str, acts: int) -> dict[str, Any]:
        start = W0 - back * HOUR_MS
        return at(
            "hour",
            f"{cluster}:{cause}",
            cluster=cluster,
            cause=cause,
            acts=acts,
            pairs=2 * acts,
            from_ms=start,
            to_ms=start + HOUR_MS,
        )

    rows = [
        hour(0, "c1", "first", 1),
        hour(0, "c2", "first", 2),
        hour(0, "c2", "expired", 4),
        hour(5, "c1", "first", 8),
        hour(served.HOURS, "c1", "first", 16),
        at("24h", "c1:first", cause="first", acts=9, pairs=18),
    ]
    found = take({CHURN.table.name: frame(spark, CHURN.table, rows)}, AS_OF)["n"]
    assert [(row["from_ms"], row["cause"], row["acts"], row["pairs"]) for row in found.of(CHURN_HOURS)] == [
        (W0 - 5 * HOUR_MS, "first", 8, 16),
        (W0, "expired", 4, 8),
        (W0, "first", 3, 6),
    ]
    assert units(found, CHURN.table.name) == ["c1:first"]


def states(spark: SparkSession, rows: Iterable[tuple[str, str, int, int | None]]) -> DataFrame:
    """Of a broker from so many hours before `as_of` to so many, or still."""
    listed = [
        ("n", "c1", broker, state, AS_OF - back * HOUR_MS, None if to is None else AS_OF - to * HOUR_MS)
        for broker, state, back, to in rows
    ]
    return as_frame(spark, listed, STATES)


def test_strips_are_of_the_last_days_the_longest_away_first(spark: SparkSession) -> None:
    rows = [
        ("a", "DOWN", 400, 168),
        ("a", "UP", 168, None),
        ("b", "UP", 400, 3),
        ("b", "DOWN", 3, None),
        ("c", "PLANNED", 400, 100),
        ("c", "DOWN", 100, 90),
        ("c", "UP", 90, -1),
    ]
    found = take({BROKER_STATES: states(spark, rows)}, AS_OF)["n"].of(BROKER_STATES)
    assert [
        (row["broker"], row["state"], (AS_OF - row["from_ms"]) // HOUR_MS, (AS_OF - row["to_ms"]) // HOUR_MS)
        for row in found
    ] == [
        ("c", "PLANNED", 168, 100),
        ("c", "DOWN", 100, 90),
        ("c", "UP", 90, 0),
        ("b", "UP", 168, 3),
        ("b", "DOWN", 3, 0),
        ("a", "UP", 168, 0),
    ]
    assert {row["of"] for row in found} == {3}
    assert {row["broker"]: row["down_ms"] // HOUR_MS for row in found} == {"a": 0, "b": 3, "c": 10}


def test_strips_of_so_many_brokers_and_states(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "STRIPS", 2)
    monkeypatch.setattr(served, "STRIP_STATES", 2)
    rows = [
        (broker, "UP" if back % 2 else "DOWN", back, back - 1) for broker in "abc" for back in (4, 3, 2, 1)
    ]
    found = take({BROKER_STATES: states(spark, rows)}, AS_OF)["n"].of(BROKER_STATES)
    reported = [
        (row["broker"], (AS_OF - row["from_ms"]) // HOUR_MS, row["down_ms"] // HOUR_MS, row["of"])
        for row in found
    ]
    assert reported == [("a", 2, 2, 3), ("a", 1, 2, 3), ("b", 2, 2, 3), ("b", 1, 2, 3)]


def test_the_longest_window_that_there_is(spark: SparkSession) -> None:
    flap = [
        at("1h", "slot:c:a:0", score=1.0),
        at("now", "slot:c:a:0", score=1.0),
        at("day", "slot:c:a:0", score=2.0),
    ]
    skew = [at("now", "topic:a", queues_max_to_mean=None), at("now", "topic:b", queues_max_to_mean=1.5)]
    found = take(
        {
            FLAP.table.name: frame(spark, FLAP.table, flap),
            SKEW.table.name: frame(spark, SKEW.table, skew),
        },
        AS_OF,
    )["n"]
    assert [row["window"] for row in found.longest(FLAP.table.name)] == ["1h"]
    assert [row["unit"] for row in found.longest(SKEW.table.name)] == ["topic:b", "topic:a"]
    assert found.longest(INCIDENTS.table.name) == ()


def test_nothing_is_nothing(spark: SparkSession) -> None:
    assert take({INCIDENTS.table.name: frame(spark, INCIDENTS.table, [])}, AS_OF) == {}


def test_the_example_comes_through_as_it_is(spark: SparkSession) -> None:
    """What the other tests of this folder and those of HTTP rest on."""
    tables: dict[str, Any] = {
        name: [{**one, "namespace": "n"} for one in rows] for name, rows in TABLES.items()
    }
    hourly = tables.pop(CHURN_HOURS)
    tables[CHURN.table.name] += [
        {**at("hour", f"c1:{one['cause']}"), **one, "to_ms": one["from_ms"] + HOUR_MS} for one in hourly
    ]
    frames = {
        table.name: frame(spark, table, [without(one, "of") for one in tables.get(table.name, ())])
        for table in catalogue.TABLES
    }
    states = [without(one, "of", "down_ms") for one in tables[BROKER_STATES]]
    frames[BROKER_STATES] = as_frame(spark, states, STATES)
    found = take(frames, AS_OF)["n"]
    assert set(found.tables) == set(TABLES)
    for name, rows in TABLES.items():
        assert in_order(found.of(name)) == in_order(rows), name


def without(one: Mapping[str, Any], *columns: str) -> dict[str, Any]:
    return {column: value for column, value in one.items() if column not in columns}


def in_order(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """`of` is the example's own."""
    return sorted((without(one, "of") for one in rows), key=lambda one: json.dumps(one, sort_keys=True))


def test_the_limits_are_those_of_the_specification() -> None:
    assert (UNITS["topic"], UNITS["slot"], LATEST) == (200, 100, 200)
    assert UNITS["broker"] >= WORST
    assert DAYS >= 28
