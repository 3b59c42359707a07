"""Which runs get a Spark that is set up for few events, known from the store and the landing before Spark starts."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties
from deltalake.schema import Schema
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyspark.sql import SparkSession
from redis import Redis

from mqnamesrv.store import EmbeddedStore
from mqpipeline import lean
from mqpipeline.lake.log import LOG
from mqpipeline.landing.progress import Progress, StreamProgress
from mqpipeline.options import Options
from tests.mqpipeline.landing.streams import emit

MOST = 20_000


def write_landed(warehouse: Path, **entries: int) -> None:
    streams = {
        f"ns:{{{name}}}:events": StreamProgress(name, entries=count) for name, count in entries.items()
    }
    said = CommitProperties(custom_metadata=Progress(1, streams).said())
    statistics = f'{{"numRecords":{sum(entries.values())}}}'
    file = AddAction("part-1.parquet", 1, {}, 1, True, statistics)
    schema = Schema.from_arrow(pa.schema([("seq", pa.int64())]))
    create_table_with_add_actions(str(warehouse / "events"), schema, [file], commit_properties=said)


def trimmed_to(redis: Redis, seq: int) -> None:
    """The newest event has that number; those before have gone."""
    emit(redis, seq, seq)


def nothing(redis: Redis, warehouse: Path) -> None:
    """Neither written nor landed."""


def in_the_stream(redis: Redis, warehouse: Path) -> None:
    trimmed_to(redis, MOST)


def one_more_in_the_stream(redis: Redis, warehouse: Path) -> None:
    trimmed_to(redis, MOST + 1)


def landed(redis: Redis, warehouse: Path) -> None:
    write_landed(warehouse, default=MOST)
    trimmed_to(redis, 7)  # of another incarnation


def one_more_landed(redis: Redis, warehouse: Path) -> None:
    write_landed(warehouse, default=MOST + 1)


def one_more_of_another_namespace(redis: Redis, warehouse: Path) -> None:
    write_landed(warehouse, other=1)
    trimmed_to(redis, MOST)


@pytest.mark.parametrize(
    ("history", "is_lean"),
    [
        (nothing, True),
        (in_the_stream, True),
        (one_more_in_the_stream, False),
        (landed, True),
        (one_more_landed, False),
        (one_more_of_another_namespace, False),
    ],
)
def test_by_the_number_of_events(
    redis: Redis,
    store: EmbeddedStore,
    tmp_path: Path,
    history: Callable[[Redis, Path], None],
    is_lean: bool,
) -> None:
    history(redis, tmp_path)
    assert lean.settings(Options(url=store.url, warehouse=str(tmp_path))) == (lean.LEAN if is_lean else {})
    assert lean.settings(Options(url=store.url, warehouse=tmp_path.as_uri())) == (
        lean.LEAN if is_lean else {}
    )


def test_of_whichever_namespaces_there_are(redis: Redis, store: EmbeddedStore, tmp_path: Path) -> None:
    options = Options(url=store.url, warehouse=str(tmp_path), namespaces=("*",))
    emit(redis, MOST, MOST, namespace="one")
    assert lean.settings(options) == lean.LEAN
    emit(redis, 1, 1, namespace="other")
    assert lean.settings(options) == {}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(Options(url="redis://127.0.0.1:1", warehouse="/nowhere"), id="no store"),
        pytest.param(Options(url="no-url", warehouse="/nowhere"), id="no url"),
    ],
)
def test_where_the_number_is_not_known(options: Options) -> None:
    assert lean.settings(options) == {}


def test_a_log_that_cannot_be_read(store: EmbeddedStore, tmp_path: Path) -> None:
    write_landed(tmp_path, default=1)
    (tmp_path / "events" / LOG / f"{0:020d}.json").write_text("{")
    assert lean.settings(Options(url=store.url, warehouse=str(tmp_path))) == {}


def test_tables_that_are_not_on_this_machine(store: EmbeddedStore) -> None:
    assert lean.settings(Options(url=store.url, warehouse="s3a://bucket/tables")) == {}


def planning(spark: SparkSession) -> dict[str, str | None]:
    return {name: spark.conf.get(name, None) for name in lean.PLANNING}


@pytest.mark.parametrize(("events", "is_lean"), [(MOST, True), (MOST + 1, False)])
def test_a_session_that_lasts_plans_for_the_events_there_are(
    spark: SparkSession, events: int, is_lean: bool
) -> None:
    before = planning(spark)
    with lean.planning_for(spark, events):
        assert planning(spark) == (lean.PLANNING if is_lean else before)
    assert planning(spark) == before != lean.PLANNING


def test_a_session_that_was_submitted_to_plans_as_its_caller_chose(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = planning(spark)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with lean.planning_for(spark, 0):
        assert planning(spark) == before
