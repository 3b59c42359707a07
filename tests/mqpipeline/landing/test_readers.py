"""Landed tables in any folder, and for readers that know nothing of this pipeline."""

import base64
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from redis import Redis

from mqnamesrv.store import EmbeddedStore
from mqpipeline.lake.log import opened
from mqpipeline.lake.maintenance import compact
from mqpipeline.lake.place import place
from mqpipeline.landing.check import check
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.landing import Landing
from mqpipeline.landing.reading import read_events
from mqpipeline.options import OptionError
from mqpipeline.schemas import EVENTS
from tests.mqpipeline.landing.conftest import Make
from tests.mqpipeline.landing.streams import INC, STREAM, emit

HOSTILE = b"broker-\xff\xfe"


@pytest.mark.usefixtures("read_by_tasks")
@pytest.mark.parametrize("name", ["[a-b]", "{a,b}", "a*b?", "with a space", "größe-库", "a=b,c;#+&"])
def test_any_folder(
    spark: SparkSession, redis: Redis, store: EmbeddedStore, tmp_path: Path, name: str
) -> None:
    root = str(tmp_path / name)
    for first in (1, 3):
        emit(redis, first, first + 1)
        landing = Landing(spark, root, EVENTS_LAND, {"url": store.url})
        landing.land_available()
        landing.close()
    log = opened(place(root).under("events"), EVENTS)
    assert log is not None
    assert compact(log) == 1
    assert sorted(row["seq"] for row in read_events(spark, root).collect()) == [1, 2, 3, 4]
    assert check(place(root).under("events"), EVENTS_LAND)[:2] == ([], [])
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_percent_is_refused(spark: SparkSession, store: EmbeddedStore, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="rename it"):
        Landing(spark, str(tmp_path / "50%"), EVENTS_LAND, {"url": store.url})
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_no_utf8(spark: SparkSession, redis: Redis, make: Make, tmp_path: Path) -> None:
    """All of a file was unreadable for others once one name in it was not."""
    fields = {"v": 1, "kind": "broker_removed", "inc": INC, "seq": 1, "broker": HOSTILE}
    redis.xadd(STREAM, fields, id=f"{INC + 1}-0")  # type: ignore[arg-type]
    emit(redis, 2, 2)
    assert make().land_available().streams[STREAM].rejected == 1
    [file] = (tmp_path / "events").glob("day=*/*")
    pq.read_table(file).validate(full=True)
    table = DeltaTable(str(tmp_path / "events")).to_pyarrow_table()
    table.validate(full=True)
    rows = {row["seq"]: row for row in table.to_pylist()}
    assert (rows[1]["broker"], rows[1]["rejected"]) == (None, "text")
    assert base64.b64decode(dict(rows[1]["fields"])["broker"]) == HOSTILE
    assert (rows[2]["kind"], rows[2]["rejected"]) == ("kv_changed", None)


def test_positions_when_no_commit_says_them(redis: Redis, make: Make, tmp_path: Path) -> None:
    """As after a table that another program has copied."""
    emit(redis, 1, 4)
    emit(redis, 1, 2, namespace="b")
    said = make(namespaces=("default", "b")).land_available()
    for entry in (tmp_path / "events" / "_delta_log").glob("*.json"):
        lines = [line for line in entry.read_text().splitlines() if '"streams"' not in line]
        entry.write_text("\n".join(lines))
    shown = make(namespaces=("default", "b")).progress
    assert shown.batch == said.batch
    for stream, progress in shown.streams.items():
        known = said.streams[stream]
        assert (progress.id, progress.inc, progress.seq) == (known.id, known.inc, known.seq)
        assert progress.entries == known.entries
    emit(redis, 5, 5)
    assert make().land_available().streams[STREAM].entries == 5
