"""The tables of the worked example."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqpipeline.clean import clean, gaps
from mqpipeline.schemas import BROKER_SESSIONS, BROKER_VERSIONS, EVENTS, GAPS, ROUTE_VERSIONS
from mqpipeline.tables.broker_versions import broker_versions
from mqpipeline.tables.sessions import sessions
from tests.mqpipeline import worked_example
from tests.mqpipeline.rows import frame, rows_of, version_rows
from tests.mqpipeline.stream import seconds

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return frame(spark, EVENTS, worked_example.ROWS)


@pytest.fixture(scope="module")
def kept(events: DataFrame) -> DataFrame:
    return clean(events).localCheckpoint()


def test_sessions(kept: DataFrame) -> None:
    found = rows_of(sessions(kept), "start_ms", "end_ms", "broker", "epoch", "end_cause", "open")
    assert {seconds(row, 0, 1) for row in found} == {
        (-900, 600, "a", 1, "lost", False),
        (660, 1920, "a", 3, "expired", False),
        (2400, None, "a", 6, None, True),
        (-900, 1200, "b", 2, "unregistered", False),
        (1500, None, "b", 4, None, True),
        (1800, 3300, "c", 5, "expired", False),
    }


def test_versions_of_t1_on_b(kept: DataFrame) -> None:
    versions = version_rows(kept).where("topic = 'T1' and broker = 'b'")
    found = rows_of(versions, "from_ms", "to_ms", "epoch", "perm", "from_actor", "to_cause")
    assert {seconds(row, 0, 1) for row in found} == {
        (-900, 1500, 2, 6, "wire:10.0.0.1:41210", "epoch"),
        (1500, 2700, 4, 6, "wire:10.0.0.1:41210", "wipe"),
        (2700, 3000, 4, 4, "token:alice", "restore"),
        (3000, None, 4, 6, "token:alice", None),
    }


@pytest.mark.parametrize("turn", [sessions, broker_versions, version_rows])
def test_columns(kept: DataFrame, turn: object) -> None:
    tables = {sessions: BROKER_SESSIONS, broker_versions: BROKER_VERSIONS, version_rows: ROUTE_VERSIONS}
    found = turn(kept).schema  # type: ignore[operator]
    wanted = tables[turn].schema  # type: ignore[index]
    assert [(one.name, one.dataType.simpleString()) for one in found] == [
        (one.name, one.dataType.simpleString()) for one in wanted
    ]


def test_columns_of_gaps(events: DataFrame) -> None:
    found = gaps(events).schema
    assert [(one.name, one.dataType) for one in found] == [(one.name, one.dataType) for one in GAPS.schema]
