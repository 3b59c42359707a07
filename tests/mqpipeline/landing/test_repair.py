"""A landed table without a log, or with one that lacks its end: what the files have comes in again, each entry once."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from redis import Redis

from mqpipeline.lake.log import LOG, LakeError, Log, entry, opened
from mqpipeline.lake.maintenance import compact
from mqpipeline.lake.place import Place, place
from mqpipeline.landing.check import check
from mqpipeline.landing.kinds import EVENTS_LAND, HEARTBEATS_LAND, Landed
from mqpipeline.landing.landing import Landing
from mqpipeline.landing.progress import progress_of
from mqpipeline.landing.reading import heartbeats
from mqpipeline.landing.repair import done, planned
from pyspark_redis_stream.ids import Id, parsed
from pyspark_redis_stream.streams import StreamPartition
from tests.mqpipeline.landing.conftest import Make
from tests.mqpipeline.landing.streams import DAY_MS, INC, STREAM, emit, landed

EVERY_MS = DAY_MS // 4


def events(root: Path) -> Place:
    return place(str(root)).under("events")


def log_of(root: Path, kind: Landed = EVENTS_LAND) -> Log:
    log = opened(place(str(root)).under(kind.table.name), kind.table)
    assert log is not None
    return log


def land(redis: Redis, make: Make, *batches: tuple[int, int]) -> None:
    for first, last in batches:
        emit(redis, first, last, every_ms=EVERY_MS)
        make().land_available()


def write_only(landing: Landing, first: int, last: int, batch: int) -> None:
    """Files of a batch whose process is killed before it commits."""
    ids = (Id(INC + EVERY_MS * seq, 0) for seq in (first, last))
    assert landing._write_files([StreamPartition(STREAM, *ids)], batch)


def repair(root: Path, kind: Landed = EVENTS_LAND) -> list[str]:
    plan = planned(place(str(root)).under(kind.table.name), kind)
    assert plan is not None
    done(plan)
    return [*plan.lines()]


def seqs_by_batch(entries: Iterable[tuple[str, int, int, int]]) -> list[tuple[int, int]]:
    return sorted((batch, seq) for _, _, seq, batch in entries)


def test_no_log_at_all(spark: SparkSession, redis: Redis, make: Make, tmp_path: Path) -> None:
    land(redis, make, (1, 2), (3, 5))
    assert compact(log_of(tmp_path)) == 1  # of its sources only one side may count
    land(redis, make, (6, 9))
    before, progress = log_of(tmp_path), make().progress
    rows, files = landed(spark, tmp_path), {file.path for file in before.files()}
    shutil.rmtree(tmp_path / "events" / LOG)
    redis.delete(STREAM)
    emit(redis, 10, 10, every_ms=EVERY_MS)
    with pytest.raises(LakeError, match=r"has files and no log\. Run `mqpipeline repair`"):
        make().land_available()
    print(*repair(tmp_path), sep="\n")
    after = log_of(tmp_path)
    assert after.delta.schema() == before.delta.schema()  # made without Java
    assert after.delta.metadata().configuration == before.delta.metadata().configuration
    assert {file.path for file in after.files()} == files
    assert [(one.least, one.most, one.rows) for one in sorted(after.files(), key=str)] == [
        (one.least, one.most, one.rows) for one in sorted(before.files(), key=str)
    ]
    assert landed(spark, tmp_path) == rows
    again = progress_of(after, EVENTS_LAND)
    assert (again.batch, again.streams[STREAM].at) == (progress.batch, progress.streams[STREAM].at)
    stream = make().land_available().streams[STREAM]
    assert (stream.seq, stream.entries, stream.holes) == (10, 10, 0)
    assert seqs_by_batch(landed(spark, tmp_path).elements())[-1] == (4, 10)
    assert check(events(tmp_path), EVENTS_LAND).findings == []


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("numRecords", 0),
        ("numRecords", 9),
        ("minValues.id_ms", INC - 1),
        ("maxValues.id_ms", INC + 1),
        ("maxValues.batch", 0),
        ("minValues.namespace", "z"),
    ],
)
def test_what_the_log_says_of_rows_and_is_not_so(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path, said: str, instead: Any
) -> None:
    land(redis, make, (1, 2), (3, 5))
    rows, before = landed(spark, tmp_path), sorted(log_of(tmp_path).files(), key=str)
    newest = tmp_path / "events" / entry(log_of(tmp_path).version)
    lines = [json.loads(line) for line in newest.read_text().splitlines()]
    added = next(line["add"] for line in lines if "add" in line)
    statistics = json.loads(added["stats"])
    *above, name = said.split(".")
    (statistics[above[0]] if above else statistics)[name] = instead
    added["stats"] = json.dumps(statistics)
    newest.write_text("\n".join(map(json.dumps, lines)))
    assert any("mqpipeline repair" in line for line in check(events(tmp_path), EVENTS_LAND).findings)
    assert any("the log says what is not so" in line for line in repair(tmp_path))
    assert check(events(tmp_path), EVENTS_LAND).findings == []
    assert planned(events(tmp_path), EVENTS_LAND) is None
    assert sorted(log_of(tmp_path).files(), key=str) == before
    assert landed(spark, tmp_path) == rows
    assert make().land_available().streams[STREAM].entries == 5


def test_a_last_batch_of_which_files_are_missing_is_landed_again(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    land(redis, make, (1, 3))
    emit(redis, 4, 6, every_ms=EVERY_MS)
    write_only(make(), 5, 6, 2)
    shutil.rmtree(tmp_path / "events" / LOG)
    lines = repair(tmp_path)
    assert any("files stay out" in line for line in lines)
    assert make().progress.streams[STREAM].seq == 3
    make().land_available()
    assert seqs_by_batch(landed(spark, tmp_path).elements()) == [
        *((1, seq) for seq in (1, 2, 3)),
        *((2, seq) for seq in (4, 5, 6)),
    ]


def test_what_a_killed_process_wrote_of_the_beginning_comes_in(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    land(redis, make, (1, 3))
    emit(redis, 4, 7, every_ms=EVERY_MS)
    write_only(make(), 4, 5, 2)  # of one day
    write_only(make(), 5, 6, 2)  # and another attempt
    shutil.rmtree(tmp_path / "events" / LOG)
    repair(tmp_path)
    assert make().progress.streams[STREAM].seq == 6
    make().land_available()
    assert [seq for _, seq in seqs_by_batch(landed(spark, tmp_path).elements())] == [*range(1, 8)]
    assert check(events(tmp_path), EVENTS_LAND).findings == []


def test_files_that_cannot_be_read_stay_out_and_where_they_are(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    land(redis, make, (1, 1), (5, 5))
    first, second = sorted((tmp_path / "events").glob("day=*/*"))
    second.write_bytes(second.read_bytes()[:99])
    shutil.rmtree(tmp_path / "events" / LOG)
    assert any(second.name in line and "cannot be read" in line for line in repair(tmp_path))
    assert landed(spark, tmp_path).total() == 1
    assert second.exists()
    shutil.rmtree(tmp_path / "events" / LOG)
    first.write_bytes(b"")
    with pytest.raises(LakeError, match="no file that can be read"):
        planned(events(tmp_path), EVENTS_LAND)


@pytest.mark.parametrize("step", range(6))
def test_a_killed_repair_is_done_again(
    spark: SparkSession,
    redis: Redis,
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
) -> None:
    land(redis, make, (1, 2), (3, 4), (5, 6))
    redis.delete(STREAM)
    emit(redis, 7, 7, every_ms=EVERY_MS)
    (tmp_path / "events" / LOG / f"{2:020d}.json").write_bytes(b"{")
    steps = {"left": step}

    def stepwise(whole: Any) -> Any:
        def call(*arguments: Any) -> None:
            if not steps["left"]:
                raise RuntimeError("killed")
            steps["left"] -= 1
            whole(*arguments)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(Place, "move", stepwise(Place.move))
        patch.setattr(Place, "write", stepwise(Place.write))
        try:
            repair(tmp_path)
        except RuntimeError:
            assert planned(events(tmp_path), EVENTS_LAND) is not None
    plan = planned(events(tmp_path), EVENTS_LAND)
    if plan is not None:
        done(plan)
    assert planned(events(tmp_path), EVENTS_LAND) is None
    assert make().land_available().streams[STREAM].entries == 7
    assert [seq for _, seq in seqs_by_batch(landed(spark, tmp_path).elements())] == [*range(1, 8)]
    assert check(events(tmp_path), EVENTS_LAND).findings == []


def test_heartbeats_have_no_batches(spark: SparkSession, redis: Redis, make: Make, tmp_path: Path) -> None:
    for number in range(3):
        redis.xadd("ns:{default}:heartbeats", {"id": number, "code": 34}, id=f"{INC + number}-0")
        make(HEARTBEATS_LAND).land_available()
    assert compact(log_of(tmp_path, HEARTBEATS_LAND)) == 2
    shutil.rmtree(tmp_path / "heartbeats" / LOG)
    redis.delete("ns:{default}:heartbeats")
    redis.xadd("ns:{default}:heartbeats", {"id": 3, "code": 34}, id=f"{INC + 3}-0")
    repair(tmp_path, HEARTBEATS_LAND)
    make(HEARTBEATS_LAND).land_available()
    assert sorted(row["broker_id"] for row in heartbeats(spark, str(tmp_path)).rows().collect()) == [
        0,
        1,
        2,
        3,
    ]


def test_what_vacuum_and_delta_rs_leave_alone(redis: Redis, make: Make, tmp_path: Path) -> None:
    land(redis, make, (1, 1))
    aside = tmp_path / "events" / LOG / "_damaged-20260101T000000Z" / f"{9:020d}.json"
    aside.parent.mkdir()
    aside.write_text("{}")
    old = tmp_path / "events" / "_progress.json.migrated"
    old.write_text("{}")
    table = DeltaTable(place(str(tmp_path)).under("events").url)
    assert table.version() == 1
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert aside.exists()
    assert old.exists()


@pytest.mark.parametrize("damage", ["lost", "cut", "spoiled"])
@pytest.mark.parametrize("compacted", [False, True])
def test_a_data_file_is_lost(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path, damage: str, compacted: bool
) -> None:
    """Its entries come from the files that it was made of, where these are still there; else they are gone."""
    land(redis, make, (1, 2), (3, 3), (4, 5))
    if compacted:
        assert compact(log_of(tmp_path)) == 1
    lost = max(
        log_of(tmp_path).files(), key=lambda file: (file.partition["day"] == "2026-01-01", file.rows or 0)
    )
    file = tmp_path / "events" / lost.path
    if damage == "lost":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1] if damage == "cut" else b"\0" * lost.size)
    assert check(events(tmp_path), EVENTS_LAND).findings
    assert any(f"{lost.path} is lost or damaged, {lost.rows} entries" in line for line in repair(tmp_path))
    gone = set() if compacted else {1, 2}
    left = {seq for _, seq in seqs_by_batch(landed(spark, tmp_path).elements())}
    assert left == set(range(1, 6)) - gone
    assert planned(events(tmp_path), EVENTS_LAND) is None
    redis.xtrim(STREAM, maxlen=0)
    emit(redis, 6, 6, every_ms=EVERY_MS)
    stream = make().land_available().streams[STREAM]
    assert (stream.seq, stream.entries) == (6, 6 - len(gone))
    assert check(events(tmp_path), EVENTS_LAND).findings == []


def test_a_lost_file_of_batches_that_the_log_has_in_part(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    land(redis, make, (1, 2), (3, 6), (7, 7))  # of two days
    compact(log_of(tmp_path))
    lost = max(log_of(tmp_path).files(), key=lambda file: file.partition["day"] or "")
    (tmp_path / "events" / lost.path).unlink()
    redis.xtrim(STREAM, maxlen=0, approximate=False)
    repair(tmp_path)
    assert seqs_by_batch(landed(spark, tmp_path).elements()) == [
        *((1, 1), (1, 2), (2, 3), (2, 4), (2, 5), (2, 6), (3, 7)),
    ]


def acknowledged(redis: Redis) -> Id:
    return parsed(json.loads(redis.hget(f"{STREAM}:consumers", "pipeline:main") or "{}")["id"])


def test_a_last_batch_with_a_hole_that_was_acknowledged(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    land(redis, make, (1, 4))
    redis.xtrim(STREAM, maxlen=0, approximate=False)
    land(redis, make, (7, 9))  # 5 and 6 were trimmed
    redis.xtrim(STREAM, maxlen=0, approximate=False)
    shutil.rmtree(tmp_path / "events" / LOG)
    plan = planned(events(tmp_path), EVENTS_LAND, lambda _: acknowledged(redis))
    assert plan is not None
    done(plan)
    assert [seq for _, seq in seqs_by_batch(landed(spark, tmp_path).elements())] == [1, 2, 3, 4, 7, 8, 9]


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda entry: entry.write_bytes(b"")], ids=["removed", "emptied"]
)
def test_the_newest_entry_lost_and_the_stream_trimmed(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    land(redis, make, (1, 2), (3, 5))
    redis.xtrim(STREAM, maxlen=0, approximate=False)
    damage(tmp_path / "events" / entry(log_of(tmp_path).version))
    emit(redis, 6, 7, every_ms=EVERY_MS)
    with pytest.raises(
        LakeError, match=r"pipeline:main has landed up to .* Run `mqpipeline repair` with --url"
    ):
        make().land_available()
    plan = planned(events(tmp_path), EVENTS_LAND, lambda _: acknowledged(redis))
    assert plan is not None
    done(plan)
    make().land_available()
    assert [seq for _, seq in seqs_by_batch(landed(spark, tmp_path).elements())] == [*range(1, 8)]


def test_a_copy_of_long_ago_lands_again_what_the_stream_still_has(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    land(redis, make, (1, 2))
    shutil.copytree(tmp_path / "events", tmp_path / "copy")
    land(redis, make, (3, 5))
    shutil.rmtree(tmp_path / "events")
    (tmp_path / "copy").rename(tmp_path / "events")
    make().land_available()
    assert [seq for _, seq in seqs_by_batch(landed(spark, tmp_path).elements())] == [*range(1, 6)]
