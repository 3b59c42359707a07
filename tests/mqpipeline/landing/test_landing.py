"""Streams land: each entry once, in files by day, and acknowledged to the store after that."""

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from redis import Redis

from mqpipeline.lake.log import LOG, created, opened
from mqpipeline.lake.place import place
from mqpipeline.landing.acknowledged import acknowledged
from mqpipeline.landing.check import check_streams
from mqpipeline.landing.kinds import EVENTS_LAND, HEARTBEATS_LAND
from mqpipeline.landing.reading import NEVER, Since, events, heartbeats, read_events
from mqpipeline.landing.repair import planned
from mqpipeline.landing.stream_partitions import rows_of
from mqpipeline.schemas import EVENTS
from pyspark_redis_stream.ids import Id
from pyspark_redis_stream.streams import StreamPartition
from registry.drivers import run
from registry.events.trim import KEPT, trim
from registry.keys import Keys
from registry.plans import Origin
from testbed.eventually import eventually
from tests.mqpipeline.landing.conftest import Make
from tests.mqpipeline.landing.streams import DAY_MS, INC, STREAM, emit, landed, seqs


def reported(redis: Redis, stream: str = STREAM) -> dict[str, Any]:
    return json.loads(redis.hget(f"{stream}:consumers", "pipeline:main") or "{}")  # type: ignore[no-any-return]


def test_new_entries_land_once_and_are_acknowledged(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    assert read_events(spark, str(tmp_path)).count() == 0
    emit(redis, 1, 20, every_ms=DAY_MS // 10)  # of three days
    landing = make()
    progress = landing.land_available()
    stream = progress.streams[STREAM]
    assert (stream.seq, stream.entries, stream.rejected, stream.holes, stream.rereads) == (20, 20, 0, 0, 0)
    assert progress.as_of_ms >= INC + 2 * DAY_MS
    assert {**reported(redis), "at_ms": 0} == {"id": str(stream.at), "seq": 20, "at_ms": 0, "hold": 1}
    emit(redis, 21, 22, every_ms=DAY_MS // 10)
    assert make().land_available().streams[STREAM].entries == 22  # with what is known of them
    assert landed(spark, tmp_path) == seqs(1, 20, 1) + seqs(21, 22, 2)
    table = events(spark, str(tmp_path))
    third_day_ms = INC + 2 * DAY_MS
    later_ms = third_day_ms + DAY_MS
    assert sorted(row["seq"] for row in table.rows(Since(third_day_ms)).collect()) == [20, 21, 22]
    assert sorted(row["seq"] for row in table.rows(Since(later_ms, after_batch=1)).collect()) == [21, 22]
    assert table.rows(Since(later_ms)).isEmpty()
    assert not table.has_rows(NEVER)
    assert table.has_rows(Since(third_day_ms))
    assert table.has_rows(Since(later_ms, after_batch=1))
    assert not table.has_rows(Since(later_ms, after_batch=2))
    assert not table.has_rows(Since(later_ms))


@pytest.mark.parametrize("said", [True, False], ids=["by the log", "by no log"])
def test_when_the_first_row_was(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path, said: bool
) -> None:
    assert events(spark, str(tmp_path)).first_ms() is None
    for first in (1, 3):
        emit(redis, first, first + 1)
        make().land_available()
    entry = tmp_path / "events" / LOG / f"{1:020d}.json"  # of the first batch
    if not said:
        entry.write_text(entry.read_text().replace('\\"minValues\\"', '\\"others\\"'))
    table = events(spark, str(tmp_path))
    assert all(file.least.get("id_ms") for file in table._files) is said
    assert table.first_ms() == INC + 1


def test_an_idle_stream_and_an_empty_one_still_advance(redis: Redis, make: Make) -> None:
    emit(redis, 1, 1)
    landing = make(namespaces=("default", "other"))
    before = landing.land_available()
    assert before.streams["ns:{other}:events"].as_of_ms >= before.as_of_ms > INC
    eventually(lambda: landing.advance().as_of_ms > before.as_of_ms)
    assert landing.progress.batch == before.batch
    emit(redis, 2, 2)
    waiting = landing.advance().streams[STREAM].as_of_ms
    eventually(lambda: redis.time()[1] // 1000 != waiting % 1000)
    assert landing.advance().streams[STREAM].as_of_ms == waiting  # for seq 2 has not landed


@pytest.mark.parametrize("gone", ["its stream", "its name"])
def test_a_namespace_that_is_gone_stops_no_other(redis: Redis, make: Make, gone: str) -> None:
    for namespace in ("default", "other"):
        emit(redis, 1, 1, namespace=namespace)
    names: tuple[str, ...] = ("default", "other")
    before = make(namespaces=names).land_available()
    if gone == "its stream":
        redis.delete("ns:{other}:events")
    else:
        names = ("default",)
    landing = make(namespaces=names)
    eventually(lambda: landing.advance().as_of_ms > before.as_of_ms)
    after = landing.progress
    assert after.as_of["default"] == after.as_of_ms
    assert INC < after.as_of["other"] < after.as_of_ms
    assert set(after.absent) == {"ns:{other}:events"}


def test_namespaces_and_a_pattern(spark: SparkSession, redis: Redis, make: Make, tmp_path: Path) -> None:
    for namespace in ("a", "b"):
        emit(redis, 1, 3, namespace=namespace)
    assert set(make(namespaces=("*",)).land_available().streams) == {"ns:{a}:events", "ns:{b}:events"}
    assert Counter(namespace for namespace, *_ in landed(spark, tmp_path)) == {"a": 3, "b": 3}


def test_a_limit_makes_batches(spark: SparkSession, redis: Redis, make: Make, tmp_path: Path) -> None:
    emit(redis, 1, 5)
    landing = make(maxEntriesPerBatch="2")
    assert landing.land_available().batch == 3
    assert landed(spark, tmp_path) == seqs(1, 2, 1) + seqs(3, 4, 2) + seqs(5, 5, 3)
    assert landing.land_available().batch == 3


def test_what_comes_while_it_lands_is_for_the_next_time(
    redis: Redis, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    emit(redis, 1, 2)
    landing = make()
    land = landing._land

    def meanwhile(partitions: Any) -> None:
        emit(redis, 3, 3)
        land(partitions)

    monkeypatch.setattr(landing, "_land", meanwhile)
    assert landing.land_available().streams[STREAM].seq == 2
    monkeypatch.undo()
    assert landing.land_available().streams[STREAM].seq == 3


def test_tasks_share_many_partitions(redis: Redis, make: Make) -> None:
    """A task costs as much as thousands of entries."""
    for number in range(20):
        emit(redis, 1, 1, namespace=f"{number:02}")
    landing = make(namespaces=("*",))
    partitions = landing._waiting()
    assert len(partitions) == 20
    assert landing._spark.createDataFrame(rows_of(partitions)).rdd.getNumPartitions() == 4 * 2


@pytest.mark.parametrize(("at", "after"), [("_commit", False), ("_commit", True), ("_report_to_store", True)])
def test_a_batch_that_breaks_off_lands_once(
    spark: SparkSession,
    redis: Redis,
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at: str,
    after: bool,
) -> None:
    emit(redis, 1, 4, every_ms=DAY_MS // 2)
    landing = make()
    land = landing._land
    step = getattr(landing, at)

    def breaks_off(*arguments: Any) -> None:
        if after:
            step(*arguments)
        raise RuntimeError("killed")

    def breaking(partitions: Any) -> None:
        monkeypatch.setattr(landing, at, breaks_off)
        land(partitions)

    monkeypatch.setattr(landing, "_land", breaking)
    with pytest.raises(RuntimeError, match="killed"):
        landing.land_available()
    whole = after
    assert landed(spark, tmp_path) == (seqs(1, 4, 1) if whole else Counter())
    if whole:
        redis.xtrim(STREAM, maxlen=1, approximate=False)  # as a trimmer may after that
    emit(redis, 5, 6, every_ms=DAY_MS // 2)
    make().land_available()
    rows = landed(spark, tmp_path)
    assert sum(rows.values()) == 6
    assert {(inc, seq) for _, inc, seq, _ in rows} == {(INC, seq) for seq in range(1, 7)}
    assert reported(redis)["seq"] == 6


def test_what_a_lost_primary_had_is_read_again(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    emit(redis, 1, 5)
    make().land_available()
    redis.delete(STREAM)
    emit(redis, 1, 3)
    emit(redis, 4, 4, every_ms=2)
    stream = make().land_available().streams[STREAM]
    assert (stream.rereads, stream.holes, stream.entries, stream.seq) == (1, 0, 9, 4)
    assert landed(spark, tmp_path) == seqs(1, 5, 1) + seqs(1, 4, 2)


@pytest.mark.parametrize("where", ["at the beginning", "between batches"])
def test_missing_entries_are_counted_and_a_checkpoint_requested(redis: Redis, make: Make, where: str) -> None:
    if where == "between batches":
        emit(redis, 1, 2)
        assert make().land_available().streams[STREAM].holes == 0
        redis.delete(STREAM)
    emit(redis, 5, 6)
    assert not redis.exists(f"{STREAM}:asked")
    assert make().land_available().streams[STREAM].holes == 1
    assert json.loads(redis.hget(f"{STREAM}:asked", "request") or "")["actor"] == "job:pipeline:main"


def test_a_new_incarnation_is_no_hole(redis: Redis, make: Make) -> None:
    emit(redis, 1, 3)
    make().land_available()
    redis.flushall()
    emit(redis, 1, 1, inc=INC + 1000)
    stream = make().land_available().streams[STREAM]
    assert (stream.inc, stream.seq, stream.holes, stream.rereads) == (INC + 1000, 1, 0, 0)


def test_a_new_store_whose_clock_is_behind(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    emit(redis, 1, 3)
    make().land_available()
    redis.flushall()
    landing = make()
    for seq in (1, 2):
        emit(redis, seq, seq, inc=INC - DAY_MS)
        stream = landing.land_available().streams[STREAM]
    assert (stream.inc, stream.seq, stream.holes, stream.rereads) == (INC - DAY_MS, 2, 0, 1)
    behind = seqs(1, 1, 2, inc=INC - DAY_MS) + seqs(2, 2, 3, inc=INC - DAY_MS)
    assert landed(spark, tmp_path) == seqs(1, 3, 1) + behind


def test_nothing_is_known_of_a_time_that_has_not_come(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    year_10000_ms = 253_402_300_800_000
    emit(redis, 1, 2)
    emit(redis, 3, 3, every_ms=(year_10000_ms - INC) // 3)
    stream = make().land_available().streams[STREAM]
    assert (stream.at.ms, stream.seq) == (year_10000_ms, 3)
    assert stream.as_of_ms <= int(redis.time()[0] + 1) * 1000
    assert landed(spark, tmp_path) == seqs(1, 3, 1)


def test_rejected_entries_are_counted_and_kept(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    redis.xadd(STREAM, {"v": 1, "kind": "a", "inc": 1, "seq": 1, "epoch": "x"}, id="1-0")
    redis.xadd(STREAM, {b"any": b"\xff\r\n*"}, id="1-1")
    redis.xadd(STREAM, {"v": 1, "kind": "a", "inc": 1, "seq": 2}, id="1-2")
    assert make().land_available().streams[STREAM].rejected == 2
    rows = read_events(spark, str(tmp_path)).select("id_n", "rejected", "fields").collect()
    found = {row["id_n"]: row for row in rows}
    assert [found[n]["rejected"] for n in range(3)] == ["number", "text", None]
    assert found[0]["fields"]["epoch"] == "x"
    assert found[1]["fields"]["any"] == "/w0KKg=="


def test_heartbeats_land(spark: SparkSession, redis: Redis, make: Make, tmp_path: Path) -> None:
    for n in range(3):
        redis.xadd(
            "ns:{default}:heartbeats", {"cluster": "c", "broker": "b", "id": n, "addr": "a:1", "code": 34}
        )
    assert make(HEARTBEATS_LAND).land_available().streams["ns:{default}:heartbeats"].entries == 3
    assert sorted(row["broker_id"] for row in heartbeats(spark, str(tmp_path)).rows().collect()) == [0, 1, 2]


def test_what_is_gone_before_it_is_read_is_no_file(redis: Redis, make: Make, tmp_path: Path) -> None:
    assert make()._write_files([StreamPartition(STREAM, Id(1, 0), Id(9, 0))], 1) == []
    assert not list(tmp_path.glob("events/day=*"))


def test_only_what_has_landed_is_trimmed(redis: Redis, make: Make) -> None:
    """By the name server's own job, which keeps the newest of all."""
    keys, origin = Keys("default"), Origin("trim", "job:trim")
    landing = make()
    landing.advance()
    emit(redis, 1, KEPT + 3000)
    run(trim(keys, origin, retention_ms=0, max_bytes=1 << 30), redis)
    assert redis.xlen(STREAM) == KEPT + 3000
    landing.land_available()
    run(trim(keys, origin, retention_ms=0, max_bytes=1 << 30), redis)
    assert KEPT <= redis.xlen(STREAM) < KEPT + 3000


def test_small_files_become_one(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqpipeline.landing.landing.COMPACT_EVERY", 3)
    readers = []
    for first in (1, 3, 5):
        emit(redis, first, first + 1, every_ms=DAY_MS // 4)  # the last ones are of the next day
        make().land_available()
        readers.append(read_events(spark, str(tmp_path)))
    log = opened(place(str(tmp_path)).under("events"), EVENTS)
    assert log is not None
    assert sorted((file.partition["day"], file.rows) for file in log.files()) == [
        ("2026-01-01", 3),
        ("2026-01-02", 3),
    ]
    assert landed(spark, tmp_path) == seqs(1, 2, 1) + seqs(3, 4, 2) + seqs(5, 6, 3)
    assert read_events(spark, str(tmp_path)).where("batch > 1").count() == 4
    assert readers[0].count() == 2  # readers go on
    emit(redis, 7, 7, every_ms=DAY_MS // 4)
    assert make().land_available().streams[STREAM].entries == 7


def test_a_checkpoint_of_a_log_now_and_then(
    redis: Redis, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqpipeline.lake.log.CHECKPOINT_EVERY", 2)
    for seq in range(1, 6):
        emit(redis, seq, seq)
        make().land_available()
    versions = [int(file.name[:20]) for file in (tmp_path / "events" / LOG).glob("*.checkpoint.parquet")]
    assert sorted(versions) == [2, 4]
    assert make().progress.batch == 5


def test_a_table_of_an_older_release_gets_the_new_columns(redis: Redis, make: Make, tmp_path: Path) -> None:
    older = EVENTS._replace(columns=EVENTS.columns.removesuffix("rejected string").rstrip(", \n"))
    events = place(str(tmp_path)).under("events")
    assert "rejected" not in created(events, older).delta.schema().to_json()
    emit(redis, 1, 1)
    make().land_available()
    log = opened(events, EVENTS)
    assert log is not None
    assert "rejected" in log.delta.schema().to_json()


def test_a_store_that_is_back_whose_clock_was_ahead_goes_on(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    """A, B, A, the ids of B before those of A: what A had acknowledged says nothing of what has landed last, of B."""
    behind = INC - 100 * DAY_MS
    emit(redis, 1, 3)
    make().land_available()
    said_of_a = redis.hget(f"{STREAM}:consumers", "pipeline:main")
    redis.delete(STREAM, f"{STREAM}:consumers")
    emit(redis, 1, 2, inc=behind)
    make().land_available()
    redis.delete(STREAM, f"{STREAM}:consumers")
    emit(redis, 1, 5)
    redis.hset(f"{STREAM}:consumers", "pipeline:main", said_of_a or "")
    events_place = place(str(tmp_path)).under("events")
    server = redis.connection_pool.connection_kwargs
    url = f"unix://{server['path']}" if "path" in server else f"redis://{server['host']}:{server['port']}"
    known = partial(acknowledged, url, "main", EVENTS_LAND)
    assert check_streams(events_place, EVENTS_LAND, url, known).findings == []
    assert planned(events_place, EVENTS_LAND, known) is None
    progress = make().land_available().streams[STREAM]
    assert (progress.inc, progress.seq) == (INC, 5)
    assert {(inc, seq) for _, inc, seq, _ in landed(spark, tmp_path)} == {
        *((INC, seq) for seq in range(1, 6)),
        *((behind, seq) for seq in range(1, 3)),
    }
