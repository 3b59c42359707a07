"""The tables as Delta tables: what others find in them, and what becomes of their files."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqpipeline.delta import TABLES, DeltaTables
from mqpipeline.history.questions import ask
from mqpipeline.history.reader import Reader
from mqpipeline.options import OptionError
from mqpipeline.schemas import BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS
from mqpipeline.warehouse import Warehouse
from tests.mqpipeline.history.example import S, tables
from tests.mqpipeline.rows import frame, rows_of
from tests.mqpipeline.runs import commit, found, need_delta, sessions, write


@pytest.fixture
def delta(spark: SparkSession, tmp_path: Path) -> Warehouse:
    need_delta(spark)
    return Warehouse(spark, str(tmp_path), DeltaTables(spark, str(tmp_path)))


def test_small_files_become_one(delta: Warehouse, few_files: None) -> None:
    for name in ("a", "b"):
        run = delta.begin()
        write(run, closed=sessions(delta, name, end_ms=1))
        commit(run)
    rows = delta.read(BROKER_SESSIONS)
    assert rows_of(rows, "broker") == {("a",), ("b",)}
    assert len(rows.inputFiles()) == 1


@pytest.fixture
def few_files(spark: SparkSession) -> Iterator[None]:
    """Two are many."""
    name = "spark.databricks.delta.autoCompact.minNumFiles"
    spark.conf.set(name, 2)
    yield
    spark.conf.unset(name)


def test_files_go_when_delta_lets_them(delta: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqpipeline.delta.VACUUM_EVERY", 2)
    path = f"{delta.root}/broker_sessions"
    at_once = "'delta.deletedFileRetentionDuration' = 'interval 0 seconds'"
    held = []
    for name in ("a", "b"):
        run = delta.begin()
        write(run, closed=sessions(delta), open=sessions(delta, name))
        commit(run)
        held.append(len([*Path(path).glob("part=open/*/*.parquet")]))
        delta.spark.sql(f"alter table delta.`{path}` set tblproperties ({at_once})")  # a version of no run's
    assert held == [1, 1]
    assert found(delta) == {"b"}


def test_a_table_gets_columns(delta: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    before = BROKER_SESSIONS._replace(columns="namespace string, broker string, end_ms bigint", sort=())
    run = delta.begin()
    run.write(before, delta.spark.createDataFrame([("ns", "a", 1)], before.schema), full=False)
    with monkeypatch.context() as older:
        older.setitem(TABLES, before.name, before)
        commit(run)
    assert rows_of(delta.read(BROKER_SESSIONS), "broker", "addr") == {("a", None)}
    run = delta.begin()
    rows = frame(delta.spark, BROKER_SESSIONS, [{"broker": "b", "end_ms": 1, "addr": "10.0.0.1"}])
    write(run, closed=rows)
    commit(run)
    assert rows_of(delta.read(BROKER_SESSIONS), "broker", "addr") == {("a", None), ("b", "10.0.0.1")}


def test_tables_of_another_format_are_not_touched(delta: Warehouse) -> None:
    folders = Warehouse(delta.spark, delta.root)
    run = folders.begin()
    write(run, closed=sessions(folders, "a", end_ms=1))
    commit(run)
    with pytest.raises(OptionError, match=r"MQNS_PIPELINE_FORMAT=delta: .* are kept as parquet"):
        delta.begin()
    assert found(folders) == {"a"}


def test_history_is_asked(spark: SparkSession, delta: Warehouse) -> None:
    made = tables(spark)
    run = delta.begin()
    run.write(BROKER_SESSIONS, made.sessions, open="open", full=True)
    run.write(BROKER_VERSIONS, made.brokers, open="to_ms is null", full=True)
    run.write(ROUTE_VERSIONS, made.routes, open="to_ms is null", full=True)
    run.commit(as_of_ms=3600 * S, final_ms=0, folded={})
    asked = ask(Reader(delta).reading("default"), "route", {"topic": "T1", "at_ms": 1921 * S})
    queues = [(data["brokerName"], data["writeQueueNums"]) for data in asked["route"]["queueDatas"]]
    assert queues == [("b", 8), ("c", 12)]
