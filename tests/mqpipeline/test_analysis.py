"""What people who analyse open: all tables of one run, in the library that they know."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import mqpipeline
from mqpipeline import derived
from mqpipeline.lake.log import LakeError, created
from mqpipeline.lake.place import place
from mqpipeline.schemas import BROKER_SESSIONS, EVENTS
from mqpipeline.warehouse import Warehouse
from tests.mqpipeline.runs import commit, sessions, write


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> str:
    """After two runs."""
    warehouse = Warehouse(spark, str(tmp_path))
    for name in ("a", "b"):
        run = warehouse.begin()
        write(run, closed=sessions(warehouse), open=sessions(warehouse, name))
        commit(run)
    return str(tmp_path)


def test_a_table_in_each_library(spark: SparkSession, root: str) -> None:
    lake = mqpipeline.open(root)
    assert (lake.run, lake.as_of.timestamp()) == (2, 0.002)
    table = lake.broker_sessions
    assert table.arrow()["broker"].to_pylist() == ["b"]
    assert sorted(table.arrow().column_names) == sorted(BROKER_SESSIONS.stored_schema.names)
    assert table.arrow(["broker"]).to_pylist() == [{"broker": "b"}]
    assert table.columns["epoch"].startswith("number of the broker's registration")
    assert table.pandas()["broker"].tolist() == ["b"]
    assert [row.broker for row in table.spark(spark).collect()] == ["b"]
    assert sorted(lake.runs.arrow(["run"])["run"].to_pylist()) == [1, 2]


def test_an_earlier_run(root: str) -> None:
    lake = mqpipeline.open(root)
    assert lake.at(run=1).broker_sessions.arrow()["broker"].to_pylist() == ["a"]
    with pytest.raises(LakeError, match="has no run 3"):
        lake.at(run=3)


def test_a_reader_keeps_its_run(spark: SparkSession, root: str) -> None:
    lake = mqpipeline.open(root)
    run = Warehouse(spark, root).begin()
    write(run, closed=sessions(run.warehouse, "c", end_ms=1), full=True)
    commit(run)
    assert lake.broker_sessions.arrow()["broker"].to_pylist() == ["b"]
    assert mqpipeline.open(root).broker_sessions.arrow()["broker"].to_pylist() == ["c"]


def test_names(root: str) -> None:
    lake = mqpipeline.open(root)
    assert {"events", "route_versions", "report_availability", "at"} <= {*dir(lake)}
    with pytest.raises(AttributeError, match=r"has no table 'brokers': .*broker_sessions"):
        lake.brokers  # noqa: B018


def test_columns_that_are_not_there(root: str) -> None:
    table = mqpipeline.open(root).broker_sessions
    for wrong in ("broker", ["nope"]):
        with pytest.raises(ValueError, match=r"name a list of these: .*broker"):
            table.arrow(wrong)


def test_a_lost_file(root: str) -> None:
    lake = mqpipeline.open(root)
    for file in Path(root, "broker_sessions").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(LakeError, match=r"broker_sessions: .*Run `mqpipeline check`"):
        lake.broker_sessions.arrow()


def test_an_emptied_entry_of_the_table_of_runs(root: str) -> None:
    newest = max(Path(root, "runs", "_delta_log").glob("*.json"))
    newest.write_bytes(b"")
    with pytest.raises(LakeError, match=r"runs is damaged: entry \d+ is empty. Run `mqpipeline repair`"):
        mqpipeline.open(root)
    assert "is empty" in derived.check(place(root)).findings[0]


def test_nothing_to_open(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="has no tables: see its path, or fill it with `mqpipeline run`"):
        mqpipeline.open(str(tmp_path))


def test_what_is_not_there_yet(spark: SparkSession, root: str) -> None:
    lake = mqpipeline.open(root)
    with pytest.raises(LakeError, match="has no events yet: `mqpipeline run`"):
        lake.events.arrow()
    with pytest.raises(LakeError, match="has no gaps yet"):
        lake.gaps.arrow()
    assert lake.gaps.spark(spark).count() == 0
    created(lake.place.under("events"), EVENTS)
    assert lake.events.arrow().num_rows == 0
