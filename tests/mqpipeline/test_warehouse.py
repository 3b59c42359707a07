"""Snapshots: what a reader finds while runs come, go and die."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline import warehouse as module
from mqpipeline.lake.log import Log, OtherWriter, created, opened
from mqpipeline.schemas import BROKER_SESSIONS, GAPS, ROUTE_VERSIONS, RUNS
from mqpipeline.warehouse import Folded, Warehouse
from tests.mqpipeline.rows import frame, rows_of
from tests.mqpipeline.runs import commit, found, newest, sessions, write

DAY_MS = 86_400_000


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
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
    before = {("a", "closed"), ("b", "open"), ("c", "open")}
    assert newest(warehouse, "broker_sessions", "broker", "part") == before
    commit(second)
    assert found(warehouse) == {"a", "b", "c"}
    after = {("a", "closed"), ("b", "closed"), ("c", "open")}
    assert newest(warehouse, "broker_sessions", "broker", "part") == after
    assert rows_of(warehouse.read_open(BROKER_SESSIONS, warehouse.snapshot), "broker") == {("c",)}


def test_what_a_run_writes_of_a_table_adds_up(warehouse: Warehouse) -> None:
    run = warehouse.begin()
    write(run, closed=sessions(warehouse, "a", end_ms=1), full=True)
    write(run, closed=sessions(warehouse, "b", end_ms=1), open=sessions(warehouse, "c"), full=True)
    commit(run)
    assert found(warehouse) == {"a", "b", "c"}
    assert rows_of(warehouse.read_open(BROKER_SESSIONS, warehouse.snapshot), "broker") == {("c",)}


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


@pytest.mark.parametrize("full", [False, True])
def test_a_run_that_dies_while_it_commits_leaves_nothing(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    first = warehouse.begin()
    write(first, closed=sessions(warehouse, "a", end_ms=1), open=sessions(warehouse, "b"))
    commit(first)
    dead = warehouse.begin()
    write(dead, closed=sessions(warehouse, "dead", end_ms=1), open=sessions(warehouse, "dying"), full=full)
    with monkeypatch.context() as patched:
        patched.setattr(module, "_row", killed)
        with pytest.raises(KeyboardInterrupt):
            commit(dead)
    assert found(warehouse) == {"a", "b"}
    commit(warehouse.begin())  # which writes no sessions
    assert newest(warehouse, "broker_sessions", "broker") == {("a",), ("b",)}
    again = warehouse.begin()
    write(again, closed=sessions(warehouse, "b", end_ms=2), open=sessions(warehouse, "c"))
    commit(again)
    assert found(warehouse) == {"a", "b", "c"}


def killed(*_: object) -> Any:
    raise KeyboardInterrupt


def test_what_a_dead_run_left_is_undone_once(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    run = warehouse.begin()
    write(run, closed=sessions(warehouse, "a", end_ms=1))
    commit(run)
    dead = warehouse.begin()
    write(dead, closed=sessions(warehouse, "dead", end_ms=1), full=True)
    with monkeypatch.context() as patched:
        patched.setattr(module, "_row", killed)
        with pytest.raises(KeyboardInterrupt):
            commit(dead)
    versions = []
    for _ in range(2):  # runs that write no sessions
        commit(warehouse.begin())
        versions.append(log(warehouse).version)
    assert versions[0] == versions[1] == warehouse.snapshot.versions["broker_sessions"]
    assert found(warehouse) == {"a"}


def test_of_two_runs_at_once_one_is_refused(warehouse: Warehouse) -> None:
    one, other = warehouse.begin(), warehouse.begin()
    write(one, closed=sessions(warehouse, "one", end_ms=1))
    write(other, closed=sessions(warehouse, "other", end_ms=1))
    commit(one)
    with pytest.raises(OtherWriter, match=r"another run has written to .*broker_sessions: process \d+ of "):
        commit(other)
    assert found(warehouse) == {"one"}
    run = warehouse.begin()
    write(run, closed=sessions(warehouse, "next", end_ms=1))
    commit(run)
    assert found(warehouse) == {"one", "next"}
    assert newest(warehouse, "broker_sessions", "broker") == {("one",), ("next",)}


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


def test_what_is_out_of_use_goes_when_nothing_needs_it(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "VACUUM_EVERY", 3)
    run = warehouse.begin()
    write(run, closed=sessions(warehouse, "a", end_ms=1), open=sessions(warehouse, "b"))
    commit(run)
    log(warehouse).delta.alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
    )
    for name in ("c", "d"):
        assert len([*Path(warehouse.root).glob("broker_sessions/part=open/*/*")]) == (1 if name == "c" else 2)
        run = warehouse.begin()
        write(run, closed=sessions(warehouse), open=sessions(warehouse, name))
        commit(run)
    assert len([*Path(warehouse.root).glob("broker_sessions/part=open/*/*")]) == 1
    assert found(warehouse) == {"a", "d"}


def log(warehouse: Warehouse) -> Log:
    there = opened(warehouse.place.under("broker_sessions"), BROKER_SESSIONS)
    assert there is not None
    return there


def test_many_small_files_become_one(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPACT_EVERY", 3)
    readers = []
    for name in ("a", "b", "c"):
        run = warehouse.begin()
        write(run, closed=sessions(warehouse, name, end_ms=1))
        commit(run)
        readers.append(warehouse.read(BROKER_SESSIONS))
    assert len(warehouse.files(BROKER_SESSIONS, warehouse.snapshot)) == 1
    assert found(warehouse) == {"a", "b", "c"}
    assert rows_of(readers[0], "broker") == {("a",)}


def test_a_table_gets_columns(warehouse: Warehouse) -> None:
    before = BROKER_SESSIONS._replace(columns="namespace string, broker string, end_ms bigint", sort=())
    run = warehouse.begin()
    run.write(run.plan(before, warehouse.spark.createDataFrame([("ns", "a", 1)], before.schema), full=False))
    commit(run)
    assert rows_of(warehouse.read(BROKER_SESSIONS), "broker", "addr") == {("a", None)}
    run = warehouse.begin()
    rows = frame(warehouse.spark, BROKER_SESSIONS, [{"broker": "b", "end_ms": 1, "addr": "10.0.0.1"}])
    write(run, closed=rows)
    commit(run)
    assert rows_of(warehouse.read(BROKER_SESSIONS), "broker", "addr") == {("a", None), ("b", "10.0.0.1")}
    assert newest(warehouse, "broker_sessions", "broker", "addr") == {("a", None), ("b", "10.0.0.1")}


def test_the_runs_are_a_table(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPACT_RUNS_EVERY", 2)
    for _ in range(3):
        commit(warehouse.begin())
    assert newest(warehouse, RUNS.name, "run", "as_of_ms") == {(1, 1), (2, 2), (3, 3)}
    assert len(created(warehouse.place.under(RUNS.name), RUNS).files()) == 2
    assert warehouse.snapshot.run == 3


def test_a_run_says_until_when_each_namespace_is_known(warehouse: Warehouse) -> None:
    warehouse.begin().commit(as_of_ms=9, as_of={"a": 9, "b": 10, "gone": 3}, final_ms=0, folded={})
    assert warehouse.snapshot.as_of == {"a": 9, "b": 10, "gone": 3}
    assert warehouse.snapshot.earlier == {"gone": 3}


def test_what_cannot_be_compacted_does_not_end_a_run(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "COMPACT_EVERY", 2)
    for name in ("a", "b"):
        run = warehouse.begin()
        write(run, closed=sessions(warehouse, name, end_ms=1))
        if name == "b":
            for file in Path(warehouse.root).glob("broker_sessions/part=*/*/*"):
                file.write_bytes(b"no Parquet")
        commit(run)
    assert warehouse.snapshot.run == 2
    assert "broker_sessions is not looked after" in caplog.text


def test_files_are_partitioned_as_the_schema_says(warehouse: Warehouse) -> None:
    run = warehouse.begin()
    rows = [{"topic": f"t{n}", "broker": "a", "to_ms": n * 40 * DAY_MS} for n in range(3)]
    run.write(run.plan(ROUTE_VERSIONS, frame(warehouse.spark, ROUTE_VERSIONS, rows), full=False))
    run.write(run.plan(GAPS, frame(warehouse.spark, GAPS, [{"type": "hole", "from_seq": 3}]), full=False))
    commit(run)
    held = {
        path.parent.name
        for path in Path(warehouse.root).glob("route_versions/part=closed/bucket=*/*/*.parquet")
    }
    assert held == {"month=1970-01", "month=1970-02", "month=1970-03"}
    assert warehouse.read(ROUTE_VERSIONS).columns == [*ROUTE_VERSIONS.schema.names, "bucket", "month"]
    assert rows_of(warehouse.read(ROUTE_VERSIONS), "topic", "month") == {
        ("t0", "1970-01"),
        ("t1", "1970-02"),
        ("t2", "1970-03"),
    }
    assert rows_of(warehouse.read(GAPS), "type", "from_seq") == {("hole", 3)}
