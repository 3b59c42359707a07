"""Snapshots: what a reader finds while runs come, go and die."""

import os
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.schemas import BROKER_SESSIONS, GAPS, ROUTE_VERSIONS
from pipeline.warehouse import MERGED, Folded, Run, Warehouse
from tests.pipeline.rows import frame, rows_of

DAY_MS = 86_400_000


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    return Warehouse(spark, str(tmp_path))


def sessions(warehouse: Warehouse, *brokers: str, end_ms: int | None = None) -> DataFrame:
    return frame(warehouse.spark, BROKER_SESSIONS, [{"broker": one, "end_ms": end_ms} for one in brokers])


def write(run: Run, *, closed: DataFrame, open: DataFrame | None = None, anew: bool = False) -> None:
    rows = closed.unionByName(open) if open else closed
    run.write(BROKER_SESSIONS, rows, open="end_ms is null", anew=anew)


def commit(run: Run) -> None:
    run.commit(as_of_ms=run.number, final_ms=0, folded={"default": Folded(1, run.number, 3, True)})


def found(warehouse: Warehouse) -> set[str]:
    return {name for (name,) in rows_of(warehouse.read(BROKER_SESSIONS), "broker")}


def test_before_the_first_run_tables_are_empty(warehouse: Warehouse) -> None:
    assert warehouse.snapshot.run == 0
    empty = warehouse.read(ROUTE_VERSIONS)
    assert empty.columns == [*ROUTE_VERSIONS.schema.names, "bucket", "month"]
    assert empty.count() == 0


def test_a_run_is_seen_when_it_commits(warehouse: Warehouse) -> None:
    run = warehouse.begin()
    write(run, closed=sessions(warehouse, "a", end_ms=1), open=sessions(warehouse, "b"))
    assert found(warehouse) == set()
    assert {name for (name,) in rows_of(run.read(BROKER_SESSIONS), "broker")} == {"a", "b"}
    commit(run)
    assert found(warehouse) == {"a", "b"}
    assert warehouse.snapshot.folded == {"default": Folded(1, 1, 3, True)}


def test_closed_rows_add_up_and_open_ones_are_replaced(warehouse: Warehouse) -> None:
    first = warehouse.begin()
    write(first, closed=sessions(warehouse, "a", end_ms=1), open=sessions(warehouse, "b", "c"))
    commit(first)
    second = warehouse.begin()
    write(second, closed=sessions(warehouse, "b", end_ms=2), open=sessions(warehouse, "c"))
    commit(second)
    assert found(warehouse) == {"a", "b", "c"}
    assert rows_of(warehouse.read_open(BROKER_SESSIONS, warehouse.snapshot), "broker") == {("c",)}


def test_what_a_run_writes_of_a_table_adds_up(warehouse: Warehouse) -> None:
    run = warehouse.begin()
    write(run, closed=sessions(warehouse, "a", end_ms=1), anew=True)
    write(run, closed=sessions(warehouse, "b", end_ms=1), open=sessions(warehouse, "c"), anew=True)
    commit(run)
    assert found(warehouse) == {"a", "b", "c"}
    assert rows_of(warehouse.read_open(BROKER_SESSIONS, warehouse.snapshot), "broker") == {("c",)}


def test_a_full_run_replaces_everything(warehouse: Warehouse) -> None:
    first = warehouse.begin()
    write(first, closed=sessions(warehouse, "a", end_ms=1), open=sessions(warehouse, "b"))
    commit(first)
    full = warehouse.begin()
    write(full, closed=sessions(warehouse, "z", end_ms=1), anew=True)
    commit(full)
    assert found(warehouse) == {"z"}


def test_a_run_that_dies_leaves_nothing(warehouse: Warehouse) -> None:
    first = warehouse.begin()
    write(first, closed=sessions(warehouse, "a", end_ms=1))
    commit(first)
    dead = warehouse.begin()
    write(dead, closed=sessions(warehouse, "dead", end_ms=40 * DAY_MS), open=sessions(warehouse, "dead too"))
    again = warehouse.begin()
    assert again.number == dead.number
    write(again, closed=sessions(warehouse, "b", end_ms=1))
    commit(again)
    assert found(warehouse) == {"a", "b"}


def test_a_reader_of_the_snapshot_before_is_not_disturbed(warehouse: Warehouse) -> None:
    first = warehouse.begin()
    write(first, closed=sessions(warehouse, "a", end_ms=1), open=sessions(warehouse, "b"))
    commit(first)
    old = warehouse.read(BROKER_SESSIONS)
    second = warehouse.begin()
    write(second, closed=sessions(warehouse, "z", end_ms=1), anew=True)
    commit(second)
    assert rows_of(old, "broker") == {("a",), ("b",)}


def test_what_is_out_of_use_goes_a_run_later(warehouse: Warehouse) -> None:
    for _ in range(3):
        run = warehouse.begin()
        write(run, closed=sessions(warehouse, "a", end_ms=1), open=sessions(warehouse, "b"), anew=True)
        commit(run)
    left = sorted(os.listdir(f"{warehouse.root}/broker_sessions/size-0"))
    assert left == ["run=2", "run=3"]


def test_many_small_parts_become_one(warehouse: Warehouse) -> None:
    names = [f"b{number}" for number in range(MERGED)]
    for name in names:
        run = warehouse.begin()
        write(run, closed=sessions(warehouse, name, end_ms=1))
        commit(run)
    assert warehouse.snapshot.tables["broker_sessions"].closed == (
        f"broker_sessions/size-1/run={MERGED}/part=closed",
    )
    assert found(warehouse) == set(names)
    run = warehouse.begin()
    write(run, closed=sessions(warehouse, "z", end_ms=1))
    commit(run)
    assert os.listdir(f"{warehouse.root}/broker_sessions/size-0") == [f"run={MERGED + 1}"]


def test_files_are_partitioned_as_the_schema_says(warehouse: Warehouse) -> None:
    run = warehouse.begin()
    rows = [{"topic": f"t{n}", "broker": "a", "to_ms": n * 40 * DAY_MS} for n in range(3)]
    run.write(ROUTE_VERSIONS, frame(warehouse.spark, ROUTE_VERSIONS, rows), anew=False)
    run.write(GAPS, frame(warehouse.spark, GAPS, [{"type": "hole", "from_seq": 3}]), anew=False)
    commit(run)
    folders = {
        path.parent.name
        for path in Path(warehouse.root).glob("route_versions/size-0/run=1/part=closed/bucket=*/*/*.parquet")
    }
    assert folders == {"month=1970-01", "month=1970-02", "month=1970-03"}
    assert rows_of(warehouse.read(ROUTE_VERSIONS), "topic", "month") == {
        ("t0", "1970-01"),
        ("t1", "1970-02"),
        ("t2", "1970-03"),
    }
    assert rows_of(warehouse.read(GAPS), "type", "from_seq") == {("hole", 3)}
