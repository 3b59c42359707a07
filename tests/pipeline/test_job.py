"""Whole runs: a stream in a real store becomes tables, reports, what is served."""

import json
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py
from pyspark.sql import SparkSession

from launcher.store import EmbeddedStore
from pipeline import building, job, schemas
from pipeline.options import Options
from pipeline.scale import Scale, entries
from pipeline.warehouse import Warehouse
from pipeline.windows import month_of
from tests.pipeline import worked_example
from tests.pipeline.rows import rows_of
from tests.pipeline.stream import at

Entries = Sequence[tuple[str, Any]]
MADE_UP = Scale(
    brokers=8,
    topics=24,
    brokers_of_topic=3,
    weeks=2,
    clusters=2,
    namespace="ns",
    start_ms=month_of(int(time.time() * 1000)),  # months that are over are closed
)
DERIVED = (schemas.GAPS, schemas.BROKER_SESSIONS, schemas.BROKER_VERSIONS, schemas.ROUTE_VERSIONS)


def silent(_: str) -> None:
    """Progress, which nobody reads."""


def write(redis: redis_py.Redis, listed: Iterable[tuple[str, Any]]) -> None:
    pipe = redis.pipeline()
    for entry_id, fields in listed:
        pipe.xadd("ns:{ns}:events", fields, id=entry_id)
    pipe.execute()


def options(store: EmbeddedStore, folder: Path, **more: Any) -> Options:
    return Options(url=store.url, namespaces=("ns",), warehouse=str(folder), **more)


def test_the_worked_example_from_the_stream_to_what_is_served(
    spark: SparkSession, store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    write(redis, worked_example.RAW)
    snapshot = job.run(spark, options(store, tmp_path), silent)
    warehouse = Warehouse(spark, str(tmp_path))
    assert snapshot.folded["ns"].seq == len(worked_example.RAW)
    stays = warehouse.read(schemas.BROKER_SESSIONS).where("broker = 'a'")
    assert rows_of(stays, "start_ms", "end_ms", "end_cause") == {
        (at(-900), at(600), "lost"),
        (at(660), at(1920), "expired"),
        (at(2400), None, None),
    }
    versions = warehouse.read(schemas.ROUTE_VERSIONS).where("topic = 'T1' and broker = 'b'")
    assert rows_of(versions, "epoch", "from_ms", "to_ms", "perm") == {
        (2, at(-900), at(1500), 6),
        (4, at(1500), at(2700), 6),
        (4, at(2700), at(3000), 4),
        (4, at(3000), None, 6),
    }
    assert redis.hget("ns:{ns}:report:meta", "events") == str(len(worked_example.RAW))
    held = json.loads(redis.hget("ns:{ns}:events:consumers", "pipeline:main") or "{}")
    assert (held["id"], held["hold"]) == (worked_example.RAW[-1][0], 1)
    assert "cluster" in (tmp_path / "report-ns.html").read_text()


@pytest.fixture(scope="module")
def history(spark: SparkSession) -> Entries:
    listed = entries(spark, MADE_UP).orderBy("id_ms", "id_n").collect()
    return [(f"{row['id_ms']}-{row['id_n']}", row["fields"]) for row in listed]


def test_runs_one_after_another_give_the_tables_that_one_run_gives(
    spark: SparkSession,
    store: EmbeddedStore,
    redis: redis_py.Redis,
    tmp_path: Path,
    history: Entries,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(building, "_write_reports", lambda *_, **__: None)  # they take most of the time
    quiet = options(store, tmp_path, report="-", serve=False)
    told: list[str] = []
    cuts = (0, len(history) // 2, len(history))
    for begin, end in pairwise(cuts):
        write(redis, history[begin:end])
        job.run(spark, quiet, told.append)
    assert [line for line in told if line.startswith("reading")] == [
        "reading all that was landed",
        "reading what came since the last run",
    ]
    assert f"{len(history):,} entries of ns:{{ns}}:events have landed by now" in told
    warehouse = Warehouse(spark, str(tmp_path))
    one_by_one = {table.name: rows_of(warehouse.read(table), *table.schema.names) for table in DERIVED}
    job.report(spark, quiet, told.append, anew=True)
    at_once = {table.name: rows_of(warehouse.read(table), *table.schema.names) for table in DERIVED}
    assert one_by_one == at_once
    assert all(at_once[table.name] for table in DERIVED[1:])
