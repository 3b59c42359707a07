"""The worked example's figures."""

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from mqpipeline.reports.availability import availability
from mqpipeline.reports.catalogue import AVAILABILITY, SLO
from mqpipeline.reports.slo import slo
from mqpipeline.reports.worst import worst
from mqpipeline.schemas import BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS
from mqpipeline.states.brokers import broker_states, writable_states
from mqpipeline.states.slots import slot_states
from mqpipeline.windows import Window
from tests.mqpipeline.rows import frame
from tests.mqpipeline.states.example import AS_OF, SESSIONS, VERSIONS, W0, at

HOUR = Window("1h", W0, AS_OF)
BEFORE = Window("before", W0 - 7_200_000, W0 - 3_600_000)
Figures = tuple[float | None, ...]


@pytest.fixture(scope="module")
def slots(spark: SparkSession) -> DataFrame:
    return slot_states(frame(spark, BROKER_SESSIONS, SESSIONS), AS_OF).cache()


@pytest.fixture(scope="module")
def brokers(slots: DataFrame) -> DataFrame:
    return broker_states(slots).cache()


@pytest.fixture(scope="module")
def writable(spark: SparkSession, slots: DataFrame) -> DataFrame:
    return writable_states(slots, frame(spark, BROKER_VERSIONS, []), AS_OF).cache()


@pytest.fixture(scope="module")
def report(spark: SparkSession, brokers: DataFrame, writable: DataFrame) -> dict[str, Row]:
    versions = frame(spark, ROUTE_VERSIONS, VERSIONS)
    found = availability(brokers, writable, versions, [HOUR, BEFORE], AS_OF)
    assert found.dtypes == frame(spark, AVAILABILITY.table, []).dtypes
    rows = found.collect()
    assert {row.window for row in rows} == {"1h"}, "no row of the time before"
    return {row.unit: row for row in rows}


@pytest.mark.parametrize(
    ("unit", "seconds", "share"),
    [
        ("broker:c1:a", (3060, 540, 0, 0), 0.85),
        ("broker:c1:b", (3300, 0, 300, 0), 1),
        ("broker:c1:c", (1500, 300, 0, 1800), 0.833333),
        ("cluster:c1", (7860, 840, 300, 1800), 0.903448),
        ("topic:T1", (3600, 0, 0, 0), 1),
        ("topic:T2", (1500, 300, 0, 1800), 0.833333),
    ],
)
def test_time_in_states(report: dict[str, Row], unit: str, seconds: Figures, share: float) -> None:
    row = report[unit]
    reported = (row.up_ms / 1000, row.down_ms / 1000, row.planned_ms / 1000, row.unknown_ms / 1000)
    assert reported == seconds
    assert row.availability == pytest.approx(share, abs=5e-7)


@pytest.mark.parametrize(
    ("unit", "figures"),
    [
        ("broker:c1:a", (2, 1_530_000, 270_000)),
        ("broker:c1:b", (0, None, None)),
        ("broker:c1:c", (1, 1_500_000, 300_000)),
        ("cluster:c1", (3, 2_620_000, 280_000)),
    ],
)
def test_outages_and_repairs(report: dict[str, Row], unit: str, figures: Figures) -> None:
    assert (report[unit].outages, report[unit].mtbf_ms, report[unit].mttr_ms) == figures


def test_the_units_of_the_report(report: dict[str, Row]) -> None:
    assert sorted(report) == [
        *(f"broker:c1:{broker}" for broker in "abc"),
        "cluster:c1",
        "topic:T1",
        "topic:T2",
    ]


def test_weighted(report: dict[str, Row]) -> None:
    """Of T1 54,240 queue-seconds up and 5,760 down, of T2 9,000 and 1,800."""
    assert report["topic:T1"].weighted == 0.904
    assert report["topic:T2"].weighted == 9_000 / 10_800
    assert report["broker:c1:a"].weighted is None


def test_worst_windows(report: dict[str, Row], brokers: DataFrame) -> None:
    """Of c only half an hour is recorded, UP first: no hour fits in."""
    assert report["broker:c1:a"].worst == {"5m": 0, "1h": 0.85}
    assert report["broker:c1:b"].worst == {"5m": 1}
    assert report["broker:c1:c"].worst == {"5m": 0}
    assert report["cluster:c1"].worst is None
    found = worst(brokers, [HOUR], {"5m": 300_000, "30m": 1_800_000})
    assert {row.broker: row.worst for row in found.collect()} == {
        "a": {"5m": 0, "30m": 0.7},
        "b": {"5m": 1, "30m": 1},
        "c": {"5m": 0, "30m": pytest.approx(1500 / 1800)},
    }


@pytest.fixture(scope="module")
def budgets(spark: SparkSession, brokers: DataFrame) -> dict[str, Row]:
    found = slo(brokers, [HOUR], AS_OF)
    assert found.dtypes == frame(spark, SLO.table, []).dtypes
    return {row.unit: row for row in found.collect()}


def test_error_budget(budgets: dict[str, Row]) -> None:
    (row,) = budgets.values()
    assert (row.unit, row.slo, row.window, row.from_ms, row.to_ms) == ("cluster:c1", 0.999, "1h", W0, AS_OF)
    assert (row.budget_ms, row.spent_ms) == (8_700, 840_000)
    assert row.remaining == pytest.approx(-95.5517, abs=5e-5)


def test_burn(budgets: dict[str, Row]) -> None:
    (row,) = budgets.values()
    assert row.burn == pytest.approx({"5m": 333.33, "30m": 144.44, "1h": 96.55, "6h": 80, "3d": 80}, abs=5e-3)
    assert row.alerts == [
        "14.4"
    ]  # 75 minutes are known: of the hour enough, of 6 hours and 3 days too little


@pytest.mark.parametrize(("late", "provisional"), [(0, False), (1, True)])
def test_provisional(brokers: DataFrame, late: int, provisional: bool) -> None:
    """While what happened in the window may still be recorded."""
    found = slo(brokers, [Window("day", W0, at(3000))], AS_OF, late_ms=600_000 + late).collect()
    assert [(row.as_of, row.provisional) for row in found] == [(AS_OF, provisional)]
