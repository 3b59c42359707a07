"""Landed tables of release 0.1 become Delta tables: no row is rewritten, and all are equal before and after."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from redis import Redis

from mqpipeline.lake.log import LOG, LakeError, Log, created, opened
from mqpipeline.lake.maintenance import vacuum
from mqpipeline.lake.place import Place, place
from mqpipeline.landing.check import check
from mqpipeline.landing.kinds import EVENTS_LAND, HEARTBEATS_LAND
from mqpipeline.landing.migrate import DONE, migrate
from mqpipeline.landing.progress import WRITER, progress_of
from mqpipeline.landing.reading import heartbeats, read_events
from mqpipeline.landing.repair import done, planned
from mqpipeline.schemas import EVENTS, HEARTBEATS
from tests.mqpipeline.landing.conftest import Make
from tests.mqpipeline.landing.old import write_folder, write_positions
from tests.mqpipeline.landing.streams import DAY_MS, INC, STREAM, emit

ROWS = [("b", "8,8,6,0", "8,8,4,0", ["T1", "T2"])]
POSITION = {
    **{"id": f"{INC + DAY_MS + 7}-0", "inc": INC, "seq": 7, "as_of_ms": INC + 2 * DAY_MS, "entries": 7},
    **{"rejected": 1, "holes": 2, "rereads": 3},
}


def entry(seq: int, batch: int, day: int = 0, **columns: Any) -> dict[str, Any]:
    at = {
        "id_ms": INC + day * DAY_MS + seq,
        "id_n": 0,
        "v": 1,
        "kind": "kv_changed",
        "fields": {"key": f"k{seq}"},
    }
    return {"namespace": "default", "inc": INC, "seq": seq, "batch": batch, **at, **columns}


ENTRIES = [
    *(
        entry(1, 1),
        entry(2, 1, rows=[dict(zip(("broker", "before", "after", "topics"), ROWS[0], strict=True))]),
    ),
    *(entry(3, 2), entry(4, 3), entry(5, 3, rejected="number", fields={"ü": "[*]"})),
    *(entry(6, 4), entry(7, 4, day=1, drained=True)),
]


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Path:
    """Batches 1 and 2 became one folder, 1 to 3 after that; batch 5 was not finished, nor a folder of 1 to 4."""
    first, second = "2026-01-01", "2026-01-02"
    landed = "part-00000-1.txt"
    for batch in (1, 2, 3, 4):
        rows = [row for row in ENTRIES if row["batch"] == batch and row["seq"] != 7]
        write_folder(tmp_path, EVENTS, first, batch, batch, rows, landed)
    merged = "part-00000-2.c000.snappy.parquet"
    write_folder(tmp_path, EVENTS, first, 1, 2, ENTRIES[:3], merged)
    write_folder(tmp_path, EVENTS, first, 1, 3, ENTRIES[:5], merged)
    unfinished = write_folder(tmp_path, EVENTS, first, 1, 4, ENTRIES[:2], merged)
    (unfinished / "_SUCCESS").unlink()
    write_folder(tmp_path, EVENTS, second, 4, 4, ENTRIES[6:], landed)
    write_folder(tmp_path, EVENTS, second, 5, 5, [entry(8, 5, day=1)], landed)
    (tmp_path / "events" / "_temporary").mkdir()
    write_positions(tmp_path, EVENTS, 4, default=POSITION)
    return tmp_path


def events(root: Path) -> Place:
    return place(str(root)).under("events")


def comparable(row: Any) -> Any:
    plain = row.asDict(recursive=True)
    return sorted((name, repr(value)) for name, value in plain.items() if value is not None)


def test_all_rows_are_equal_and_no_file_is_rewritten(spark: SparkSession, root: Path) -> None:
    files = {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in root.rglob("part-*")}
    with pytest.raises(LakeError, match="Run `mqpipeline migrate`"):
        read_events(spark, str(root))
    assert migrate(events(root), EVENTS_LAND).startswith("3 files are the table now")
    rows = [comparable(row) for row in read_events(spark, str(root)).collect()]
    expected = [sorted((name, repr(value)) for name, value in entry.items()) for entry in ENTRIES]
    assert sorted(rows) == sorted(expected)
    assert {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in root.rglob("part-*")} == files
    assert check(events(root), EVENTS_LAND)[:2] == ([], [])
    assert read_events(spark, str(root)).where("batch > 3").count() == 2
    assert migrate(events(root), EVENTS_LAND) == "there is nothing to migrate"


def test_landing_goes_on_where_it_was(spark: SparkSession, redis: Redis, make: Make, root: Path) -> None:
    migrate(events(root), EVENTS_LAND)
    log = opened(events(root), EVENTS)
    assert log is not None
    assert (log.version, log.batch(WRITER)) == (0, 4)
    position = progress_of(log, EVENTS_LAND).streams[STREAM]
    assert {name: getattr(position, name) for name in POSITION} == POSITION
    emit(redis, 8, 9, every_ms=DAY_MS)
    stream = make().land_available().streams[STREAM]
    assert (stream.seq, stream.entries, stream.holes) == (9, 9, 2)
    assert sorted(row["seq"] for row in read_events(spark, str(root)).collect()) == [*range(1, 10)]


def test_the_log_is_as_a_new_table_has_it(spark: SparkSession, redis: Redis, make: Make, root: Path) -> None:
    migrate(events(root), EVENTS_LAND)
    emit(redis, 1, 1)
    make(HEARTBEATS_LAND).land_available()
    old = opened(events(root), EVENTS)
    (root / "new").mkdir()
    new = created(place(str(root / "new")), EVENTS)
    assert old is not None
    assert old.delta.schema() == new.delta.schema()
    assert old.delta.metadata().configuration == new.delta.metadata().configuration
    assert old.delta.metadata().partition_columns == new.delta.metadata().partition_columns


@pytest.mark.parametrize("step", ["the commit", "the renaming"])
def test_killed_before(step: str, spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = "mqpipeline.landing.migrate.create_table_with_add_actions" if step == "the commit" else None

    def killed(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        if at:
            patch.setattr(at, killed)
        else:
            patch.setattr(Place, "move", killed)
        with pytest.raises(RuntimeError, match="killed"):
            migrate(events(root), EVENTS_LAND)
    assert (root / "events" / LOG).exists() == (step == "the renaming")
    with pytest.raises(LakeError, match="Run `mqpipeline migrate`"):
        read_events(spark, str(root))
    assert migrate(events(root), EVENTS_LAND).startswith("3 files")
    assert read_events(spark, str(root)).count() == len(ENTRIES)
    assert (root / "events" / DONE).exists()


def test_a_table_in_which_nothing_landed(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    write_positions(tmp_path, HEARTBEATS, 0, default={"as_of_ms": 5})
    table = place(str(tmp_path)).under("heartbeats")
    assert migrate(table, HEARTBEATS_LAND).startswith("0 files")
    redis.xadd("ns:{default}:heartbeats", {"id": 1, "code": 34})
    make(HEARTBEATS_LAND).land_available()
    assert heartbeats(spark, str(tmp_path)).rows().count() == 1


@pytest.mark.parametrize("content", ["", "{", '{"batch": "x"}'])
def test_positions_that_cannot_be_read(content: str, spark: SparkSession, root: Path) -> None:
    """`repair` makes the log instead; what was not finished may come in with it, once."""
    positions = root / "events" / "_progress.json"
    positions.write_text(content)
    with pytest.raises(LakeError, match="Move it away and run `mqpipeline repair`"):
        migrate(events(root), EVENTS_LAND)
    positions.rename(root / "events" / "_progress.json.aside")
    plan = planned(events(root), EVENTS_LAND)
    assert plan is not None
    done(plan)
    assert sorted(row["seq"] for row in read_events(spark, str(root)).collect()) == [*range(1, 9)]
    assert check(events(root), EVENTS_LAND).findings == []


def test_what_was_replaced_is_deleted_by_vacuum(spark: SparkSession, root: Path) -> None:
    """Once it is a week old, as is what was not finished."""
    migrate(events(root), EVENTS_LAND)
    old_s = time.time() - 8 * 86_400
    for file in root.rglob("part-*"):
        os.utime(file, (old_s, old_s))
    log = opened(events(root), EVENTS)
    assert log is not None
    assert {file.path for file in log.files()} == {
        *("day=2026-01-01/batches=000000000001-000000000003/part-00000-2.c000.snappy.parquet",),
        *(f"day=2026-01-0{day}/batches=000000000004-000000000004/part-00000-1.txt" for day in (1, 2)),
    }
    vacuum(log)
    assert len(list(root.rglob("part-*"))) == 3
    assert read_events(spark, str(root)).count() == len(ENTRIES)
    assert (root / "events" / DONE).exists()


def test_old_text_that_is_not_utf8_is_mentioned(spark: SparkSession, root: Path) -> None:
    [file] = (root / "events" / "day=2026-01-02").glob("batches=*4-*4/*")
    rows = pq.read_table(file)
    broker = pa.array([b"\xff"], pa.binary()).view(pa.utf8())
    pq.write_table(rows.set_column(rows.schema.get_field_index("broker"), "broker", broker), file)
    migrate(events(root), EVENTS_LAND)
    findings, remarks, _ = check(events(root), EVENTS_LAND)
    assert findings == []
    assert [remark.partition(file.name)[2] for remark in remarks] == [
        " has text that is not UTF-8: this pipeline reads it, others may not"
    ]


def test_files_named_as_0_1_named_them_are_not_overlooked(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    """A table that has no other is not begun again when its log is lost."""
    write_folder(tmp_path, EVENTS, "2026-01-01", 1, 1, ENTRIES[:2], "part-00000-1.txt")
    write_positions(tmp_path, EVENTS, 1, default={**POSITION, "seq": 2, "entries": 2})
    migrate(events(tmp_path), EVENTS_LAND)
    shutil.rmtree(tmp_path / "events" / LOG)
    emit(redis, 3, 3)
    with pytest.raises(LakeError, match="has files and no log"):
        make().land_available()
    plan = planned(events(tmp_path), EVENTS_LAND)
    assert plan is not None
    done(plan)
    make().land_available()
    assert read_events(spark, str(tmp_path)).count() == 3


def test_a_file_that_cannot_be_read_is_named(spark: SparkSession, root: Path) -> None:
    file = min(root.glob("events/day=2026-01-02/*/part-*"))
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(LakeError, match=f"{file.name} cannot be read: .* and run `mqpipeline migrate` again"):
        migrate(events(root), EVENTS_LAND)
    file.unlink()
    migrate(events(root), EVENTS_LAND)
    assert [of.path for of in log_of(events(root)).files() if of.partition["day"] == "2026-01-02"] == []


def log_of(events: Place) -> Log:
    log = opened(events, EVENTS_LAND.table)
    assert log is not None
    return log
