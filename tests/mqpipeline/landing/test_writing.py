"""A task makes files of partitions: each whole, of one day, and its content reported."""

from pathlib import Path
from typing import Any, cast

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from redis import Redis

from mqnamesrv.store import EmbeddedStore
from mqpipeline.lake import files as lake_files
from mqpipeline.lake.place import place
from mqpipeline.landing import writing
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.stream_partitions import rows_of
from mqpipeline.landing.writing import Batch, LandedFile, write
from pyspark_redis_stream import reading
from pyspark_redis_stream.ids import parsed
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.streams import StreamPartition
from tests.mqpipeline.landing.streams import DAY_MS, INC, STREAM, emit

ALL = ("0-0", "18446744073709551615-18446744073709551615")
File = tuple[str, list[dict[str, Any]], LandedFile]


@pytest.fixture
def batch(spark: SparkSession, store: EmbeddedStore, tmp_path: Path) -> Batch:
    columns = cast(StructType, StructType.fromDDL(EVENTS_LAND.columns))
    options = options_of({"url": store.url, "streams": STREAM})
    return Batch(place(str(tmp_path)), EVENTS_LAND, 7, options, columns, EVENTS_LAND.table.schema)


def made(batch: Batch, *partitions: tuple[str, str, str]) -> list[File]:
    rows = rows_of(
        [StreamPartition(stream, parsed(first), parsed(last)) for stream, first, last in partitions]
    )
    return [
        file_of(batch, line)
        for found in write(batch, rows.to_batches())
        for line in found["json"].to_pylist()
    ]


def file_of(batch: Batch, line: str) -> File:
    """Its day, its rows, and what was reported of it."""
    landed = msgspec.json.decode(line, type=LandedFile)
    with batch.place.open(landed.file.path) as opened:
        return landed.file.partition["day"], pq.read_table(opened).to_pylist(), landed


def summary(file: File) -> tuple[Any, ...]:
    return msgspec.structs.astuple(file[2])[1:]


def test_a_file_a_day_and_what_is_in_it(redis: Redis, batch: Batch) -> None:
    emit(redis, 1, 5, every_ms=DAY_MS // 2)
    redis.xadd(STREAM, {"x": "y"}, id=f"{INC + 3 * DAY_MS}-7")
    files_by_day = made(batch, (STREAM, *ALL))
    assert [day for day, *_ in files_by_day] == [f"2026-01-0{n}" for n in (1, 2, 3, 4)]
    assert [[row["seq"] for row in rows] for _, rows, _ in files_by_day] == [[1], [2, 3], [4, 5], [None]]
    assert {(row["namespace"], row["batch"]) for _, rows, _ in files_by_day for row in rows} == {
        ("default", 7)
    }
    first, last = f"{INC + 2 * DAY_MS}-0", f"{INC + 5 * DAY_MS // 2}-0"
    assert summary(files_by_day[2]) == (STREAM, 2, 0, first, last, INC, 4, INC, 5)
    at = f"{INC + 3 * DAY_MS}-7"
    assert summary(files_by_day[3]) == (STREAM, 1, 1, at, at, None, None, None, None)


def test_partitions_are_read_and_no_more(redis: Redis, batch: Batch) -> None:
    emit(redis, 1, 9)
    emit(redis, 1, 3, namespace="other")
    found = made(batch, (STREAM, f"{INC + 3}-0", f"{INC + 4}-0"), ("ns:{other}:events", *ALL))
    reported = [(rows[0]["namespace"], [row["seq"] for row in rows]) for _, rows, _ in found]
    assert reported == [("default", [3, 4]), ("other", [1, 2, 3])]
    assert made(batch, (STREAM, f"{INC + 10}-0", ALL[1])) == []


@pytest.mark.parametrize(("group", "size", "files"), [(40, 1 << 20, 1), (40, 1, 3), (1 << 20, 1, 1)])
def test_what_is_large_makes_several_files(
    redis: Redis, batch: Batch, monkeypatch: pytest.MonkeyPatch, group: int, size: int, files: int
) -> None:
    """One is full once what is encoded of it is; so long as it is in memory."""
    monkeypatch.setattr(reading, "BATCH_ENTRIES", 20)
    monkeypatch.setattr(lake_files, "GROUP_ROWS", group)
    monkeypatch.setattr(writing, "FILE_BYTES", size + 100)
    emit(redis, 1, 100)
    found = made(batch._replace(options=batch.options.__class__(batch.options.url, page=20)), (STREAM, *ALL))
    assert [row["seq"] for _, rows, _ in found for row in rows] == list(range(1, 101))
    assert sum(reported.entries for *_, reported in found) == 100
    for _, rows, reported in found:
        first, last = rows[0]["seq"], rows[-1]["seq"]
        assert (reported.first_seq, reported.last_seq) == (first, last)
        assert (reported.first, reported.last) == (f"{INC + first}-0", f"{INC + last}-0")
    assert len(found) == files


def test_any_id_that_an_entry_can_have(redis: Redis, batch: Batch) -> None:
    for at in ("0-1", "5-4294967296", "9223372036854775807-1", ALL[1]):
        redis.xadd(STREAM, {"x": "y"}, id=at)
    summaries = [reported for *_, reported in made(batch, (STREAM, *ALL))]
    assert [(one.first, one.last) for one in summaries] == [
        ("0-1", "5-4294967296"),
        ("9223372036854775807-1", "9223372036854775807-1"),
        (ALL[1], ALL[1]),
    ]
