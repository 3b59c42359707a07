"""Snapshots: what a reader finds while runs come, go and die."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqpipeline import files
from mqpipeline.delta import DeltaTables
from mqpipeline.schemas import BROKER_SESSIONS, GAPS, ROUTE_VERSIONS
from mqpipeline.warehouse import MERGED, Folded, ParquetFolders, Warehouse
from tests.mqpipeline.rows import frame, rows_of
from tests.mqpipeline.runs import commit, found, need_delta, newest, sessions, write

DAY_MS = 86_400_000


@pytest.fixture(params=[ParquetFolders, DeltaTables])
def warehouse(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Warehouse:
    if request.param is DeltaTables:
        need_delta(spark)
    return Warehouse(spark, str(tmp_path), request.param(spark, str(tmp_path)))


@pytest.fixture
def folders(spark: SparkSession, tmp_path: Path) -> Warehouse:
    """Of Parquet files."""
    return Warehouse(spark, str(tmp_path))


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
    if warehouse.snapshot.format == "delta":
        before = {("a", "closed"), ("b", "open"), ("c", "open")}
        assert newest(warehouse, "broker_sessions", "broker", "part") == before
    commit(second)
    assert found(warehouse) == {"a", "b", "c"}
    if warehouse.snapshot.format == "delta":
        assert newest(warehouse, "broker_sessions", "broker", "part") == {
            ("a", "closed"),
            ("b", "closed"),
            ("c", "open"),
        }
    assert rows_of(warehouse.read_open(BROKER_SESSIONS, warehouse.snapshot), "broker") == {("c",)}


def test_what_a_run_writes_of_a_table_adds_up(warehouse: Warehouse) -> None:
    run = warehouse.begin()
    write(run, closed=sessions(warehouse, "a", end_ms=1), full=True)
    write(run, closed=sessions(warehouse, "b", end_ms=1), open=sessions(warehouse, "c"), full=True)
    commit(run)
    assert found(warehouse) == {"a", "b", "c"}
    assert rows_of(warehouse.read_open(BROKER_SESSIONS, warehouse.snapshot), "broker") == {("c",)}


def test_a_run_that_dies_leaves_nothing(folders: Warehouse) -> None:
    first = folders.begin()
    write(first, closed=sessions(folders, "a", end_ms=1))
    commit(first)
    dead = folders.begin()
    write(dead, closed=sessions(folders, "dead", end_ms=40 * DAY_MS), open=sessions(folders, "dead too"))
    again = folders.begin()
    assert again.number == dead.number
    write(again, closed=sessions(folders, "b", end_ms=1))
    commit(again)
    assert found(folders) == {"a", "b"}


def test_a_run_that_dies_while_it_commits_leaves_nothing(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = warehouse.begin()
    write(first, closed=sessions(warehouse, "a", end_ms=1), open=sessions(warehouse, "b"))
    commit(first)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    dead = warehouse.begin()
    write(dead, closed=sessions(warehouse, "dead", end_ms=1), open=sessions(warehouse, "dying"))
    with monkeypatch.context() as patched:
        patched.setattr(files, "write_text_atomically", killed)
        with pytest.raises(KeyboardInterrupt):
            commit(dead)
    assert found(warehouse) == {"a", "b"}
    commit(warehouse.begin())  # which writes no sessions
    if warehouse.snapshot.format == "delta":
        assert newest(warehouse, "broker_sessions", "broker") == {("a",), ("b",)}
    again = warehouse.begin()
    write(again, closed=sessions(warehouse, "b", end_ms=2), open=sessions(warehouse, "c"))
    commit(again)
    assert found(warehouse) == {"a", "b", "c"}


def test_a_full_run_replaces_everything_and_disturbs_no_reader(warehouse: Warehouse) -> None:
    first = warehouse.begin()
    write(first, closed=sessions(warehouse, "a", end_ms=1), open=sessions(warehouse, "b"))
    commit(first)
    old = warehouse.read(BROKER_SESSIONS)
    full = warehouse.begin()
    write(full, closed=sessions(warehouse, "z", end_ms=1), full=True)
    commit(full)
    assert found(warehouse) == {"z"}
    assert rows_of(old, "broker") == {("a",), ("b",)}


def test_what_is_out_of_use_goes_a_run_later(folders: Warehouse) -> None:
    for _ in range(3):
        run = folders.begin()
        write(run, closed=sessions(folders, "a", end_ms=1), open=sessions(folders, "b"), full=True)
        commit(run)
    left = sorted(os.listdir(f"{folders.root}/broker_sessions/size-0"))
    assert left == ["run=2", "run=3"]


def test_many_small_parts_become_one(folders: Warehouse) -> None:
    names = [f"b{number}" for number in range(MERGED)]
    for name in names:
        run = folders.begin()
        write(run, closed=sessions(folders, name, end_ms=1))
        commit(run)
    assert folders.snapshot.tables["broker_sessions"].closed == (
        f"broker_sessions/size-1/run={MERGED}/part=closed",
    )
    assert found(folders) == set(names)
    run = folders.begin()
    write(run, closed=sessions(folders, "z", end_ms=1))
    commit(run)
    assert os.listdir(f"{folders.root}/broker_sessions/size-0") == [f"run={MERGED + 1}"]


def test_files_are_partitioned_as_the_schema_says(warehouse: Warehouse) -> None:
    run = warehouse.begin()
    rows = [{"topic": f"t{n}", "broker": "a", "to_ms": n * 40 * DAY_MS} for n in range(3)]
    run.write(ROUTE_VERSIONS, frame(warehouse.spark, ROUTE_VERSIONS, rows), full=False)
    run.write(GAPS, frame(warehouse.spark, GAPS, [{"type": "hole", "from_seq": 3}]), full=False)
    commit(run)
    part = "part=closed/bucket=*/*/*.parquet"
    under = "" if warehouse.snapshot.format == "delta" else "size-0/run=1/"
    held = {path.parent.name for path in Path(warehouse.root).glob(f"route_versions/{under}{part}")}
    assert held == {"month=1970-01", "month=1970-02", "month=1970-03"}
    assert warehouse.read(ROUTE_VERSIONS).columns == [*ROUTE_VERSIONS.schema.names, "bucket", "month"]
    assert rows_of(warehouse.read(ROUTE_VERSIONS), "topic", "month") == {
        ("t0", "1970-01"),
        ("t1", "1970-02"),
        ("t2", "1970-03"),
    }
    assert rows_of(warehouse.read(GAPS), "type", "from_seq") == {("hole", 3)}
