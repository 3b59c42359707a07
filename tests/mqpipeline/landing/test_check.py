"""What `check` finds in landed tables, a line each."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from redis import Redis

from mqnamesrv.store import EmbeddedStore
from mqpipeline.lake.files import written_before
from mqpipeline.lake.log import opened
from mqpipeline.lake.place import Place, place
from mqpipeline.landing.acknowledged import nothing_known
from mqpipeline.landing.check import check, check_streams
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.progress import WRITER, progress_of
from mqpipeline.schemas import EVENTS
from tests.mqpipeline.landing.conftest import Make
from tests.mqpipeline.landing.streams import DAY_MS, INC, STREAM, emit


@pytest.fixture
def events(redis: Redis, make: Make, tmp_path: Path) -> Place:
    """Two batches, of days of their own."""
    emit(redis, 1, 2)
    make().land_available()
    emit(redis, 3, 4, every_ms=DAY_MS)
    make().land_available()
    return place(str(tmp_path)).under("events")


def files_of(events: Place) -> list[Path]:
    assert events.folder is not None
    return sorted(events.folder.glob("day=*/*"))


def cut(events: Place) -> None:
    file = files_of(events)[0]
    file.write_bytes(file.read_bytes()[:-1])


def remove(events: Place) -> None:
    files_of(events)[0].unlink()


def spoil(events: Place) -> None:
    file = files_of(events)[0]
    file.write_bytes(b"\0" * file.stat().st_size)


def commit(events: Place, rows: int | None = None, **position: object) -> None:
    """A copy of the first file, of which the log says this."""
    log = opened(events, EVENTS)
    assert log is not None
    source = files_of(events)[0]
    copy = source.with_name("copy.parquet")
    shutil.copy(source, copy)
    file = written_before(events, f"{copy.parent.name}/{copy.name}", EVENTS)
    if rows is not None:
        file = msgspec.structs.replace(file, statistics=f'{{"numRecords":{rows}}}')
    progress = progress_of(log, EVENTS_LAND)
    streams = {STREAM: msgspec.structs.replace(progress.streams[STREAM], entries=6, **position)}
    log.commit(WRITER, progress.batch + 1, [file], msgspec.structs.replace(progress, streams=streams).said())


def one_row_more(events: Place) -> None:
    commit(events, rows=3)


def twice(events: Place) -> None:
    commit(events)


def another_position(events: Place) -> None:
    commit(events, id="7-7")


def empty_entry(events: Place) -> None:
    assert events.folder is not None
    (events.folder / "_delta_log" / f"{1:020d}.json").write_bytes(b"")


DAMAGES: dict[Callable[[Place], None], str] = {
    remove: "is in the log and not there",
    cut: " bytes, and ",
    spoil: "cannot be read",
    one_row_more: "has 2 rows, and 3 in the log",
    twice: f"events: batch 1 of default has 2 entries more than once, 1 to 2 of incarnation {INC}",
    another_position: "7-7 has landed by the log, and",
    empty_entry: "00000000000000000001.json is damaged",
}


def test_in_order(events: Place) -> None:
    assert check(events, EVENTS_LAND)[:2] == ([], [])
    nothing = place(str(events.folder)).under("nothing")
    assert check(nothing, EVENTS_LAND) == ([], ["events: nothing has landed"], None)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_said(events: Place, damage: Callable[[Place], None]) -> None:
    damage(events)
    findings = check(events, EVENTS_LAND).findings
    assert any(DAMAGES[damage] in finding for finding in findings), findings
    assert not any("\n" in finding for finding in findings)


def test_files_in_no_log_are_mentioned_once_they_are_old(events: Place) -> None:
    file = files_of(events)[0]
    orphan = file.with_name("orphan.parquet")
    shutil.copy(file, orphan)
    assert check(events, EVENTS_LAND)[:2] == ([], [])
    week_ago = time.time() - 8 * 86_400
    os.utime(orphan, (week_ago, week_ago))
    findings, remarks, _ = check(events, EVENTS_LAND)
    assert (findings, remarks) == (
        [],
        ["events: 1 files are in no log and older than a week; the next vacuum deletes them"],
    )


def test_holes_and_repeats(redis: Redis, make: Make, tmp_path: Path) -> None:
    events = place(str(tmp_path)).under("events")
    for first, last in ((3, 4), (7, 8)):
        emit(redis, first, last)
        make().land_available()
        redis.delete(STREAM)
    emit(redis, 2, 2, inc=INC + 1000)
    make().land_available()
    assert check(events, EVENTS_LAND).findings == [
        f"events: default lacks 5 to 6 of incarnation {INC}, 2 entries",
        f"events: default lacks 1 to 1 of incarnation {INC + 1000}, 1 entries",
    ]


def test_entries_that_were_read_again_are_only_mentioned(redis: Redis, make: Make, tmp_path: Path) -> None:
    emit(redis, 1, 3)
    make().land_available()
    redis.delete(STREAM)
    emit(redis, 1, 2)
    make().land_available()
    findings, remarks, _ = check(place(str(tmp_path)).under("events"), EVENTS_LAND)
    assert (findings, remarks) == (
        [],
        [f"events: 2 entries of default, 1 to 2 of incarnation {INC}, were read again in a later batch"],
    )


def test_positions_against_the_store(redis: Redis, store: EmbeddedStore, events: Place) -> None:
    at = f"{INC + 4 * DAY_MS}-0"
    assert check_streams(events, EVENTS_LAND, store.url, nothing_known)[:2] == ([], [])
    redis.xtrim(STREAM, maxlen=0)
    emit(redis, 5, 5, every_ms=DAY_MS)
    between = check_streams(events, EVENTS_LAND, store.url, nothing_known)
    assert between[:2] == ([], [])
    redis.xtrim(STREAM, maxlen=0)
    emit(redis, 7, 7, every_ms=DAY_MS)
    [lost] = check_streams(events, EVENTS_LAND, store.url, nothing_known).findings
    assert lost == (
        f"{STREAM}: {at} has landed, and the oldest entry there is {INC + 7 * DAY_MS}-0: entries between are lost"
    )
    redis.delete(STREAM)
    assert check_streams(events, EVENTS_LAND, store.url, nothing_known)[:2] == (
        [],
        [f"{STREAM}: the store has no entries of it"],
    )
    emit(redis, 1, 1)
    [ahead] = check_streams(events, EVENTS_LAND, store.url, nothing_known).findings
    assert f"{at} has landed, and the newest entry there is {INC + 1}-0" in ahead
