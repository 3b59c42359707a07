"""Files of a landed table that are not its data: truncated, emptied, removed, one at a time. No data file is ever
deleted, and the next landing lands what is missing, or says what to do; after that each entry is there once."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from redis import Redis

from mqnamesrv.store import EmbeddedStore
from mqpipeline.lake.log import LOG, LakeError, opened
from mqpipeline.lake.maintenance import compact
from mqpipeline.lake.place import Place, place
from mqpipeline.landing.check import check
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.landing import Landing
from mqpipeline.landing.repair import done, planned
from mqpipeline.schemas import EVENTS
from tests.mqpipeline.landing.conftest import Make
from tests.mqpipeline.landing.streams import DAY_MS, INC, STREAM, emit

EVERY_MS = DAY_MS // 4
ENTRIES, NEW = 12, 14
CHECKPOINT = "00000000000000000003.checkpoint.parquet"
NAMES = [*(f"{version:020d}.json" for version in range(8)), CHECKPOINT, "_last_checkpoint"]


def cut(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


StoreOf = Callable[[str], EmbeddedStore]
DAMAGES: list[Callable[[Path], None]] = [cut, empty, Path.unlink]


@pytest.fixture(scope="module")
def warehouse(
    spark: SparkSession, store_of: Callable[[str], EmbeddedStore], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Six batches of two entries, a checkpoint after the third, and after the fourth a commit that makes files one."""
    root = tmp_path_factory.mktemp("landed")
    store = store_of("redis-server")
    with Redis.from_url(store.url) as redis:
        redis.flushall()
        for batch in range(6):
            emit(redis, 2 * batch + 1, 2 * batch + 2, every_ms=EVERY_MS)
            landing = Landing(spark, str(root), EVENTS_LAND, {"url": store.url}, consumer="pipeline:main")
            landing.land_available()
            landing.close()
            log = opened(place(str(root)).under("events"), EVENTS)
            assert log is not None
            if batch == 2:
                log.delta.create_checkpoint()
            if batch == 3:
                compact(log)
    assert sorted(file.name for file in (root / "events" / LOG).iterdir()) == sorted(NAMES)
    return root


def refusal(make: Make) -> str | None:
    """Return what a landing says that cannot land, None if it has landed what there is."""
    try:
        make().land_available()
    except LakeError as error:
        return str(error)
    return None


def repair(events: Place) -> None:
    plan = planned(events, EVENTS_LAND)
    assert plan is not None
    done(plan)


def seqs(root: Path) -> list[int]:
    """What any reader of Delta tables finds; no job of Spark for each."""
    return sorted(DeltaTable(str(root / "events")).to_pyarrow_table(columns=["seq"])["seq"].to_pylist())


def data_files(root: Path) -> set[Path]:
    return {file for file in root.glob("events/day=*/*") if file.stat().st_size}


CASES = [
    pytest.param(damage, name, trimmed, id=f"{damage.__name__} {name}{' trimmed' if trimmed else ''}")
    for damage in DAMAGES
    for name in NAMES
    for trimmed in (False, True)
    # as if it had never been: only the stream has it
    if not (trimmed and name == NAMES[7] and damage is not cut)
]


@pytest.mark.parametrize(("damage", "name", "trimmed"), CASES)
def test_one_lost_file(
    redis: Redis,
    make: Make,
    warehouse: Path,
    tmp_path: Path,
    damage: Callable[[Path], None],
    name: str,
    trimmed: bool,
) -> None:
    shutil.copytree(warehouse, tmp_path, dirs_exist_ok=True)
    emit(redis, 1, NEW, every_ms=EVERY_MS)
    if trimmed:
        redis.xtrim(STREAM, minid=f"{INC + EVERY_MS * (ENTRIES + 1)}-0", approximate=False)
    damage(tmp_path / "events" / LOG / name)
    files = data_files(tmp_path)
    events = place(str(tmp_path)).under("events")
    refused = refusal(make)
    if refused:
        assert "`mqpipeline repair`" in refused
        assert "\n" not in refused
    else:
        assert seqs(tmp_path) == list(range(1, NEW + 1))
    if refused or check(events, EVENTS_LAND).findings:
        repair(events)
    make().land_available()
    assert files <= data_files(tmp_path)
    assert seqs(tmp_path) == list(range(1, NEW + 1))
    assert check(events, EVENTS_LAND).findings == []
    assert planned(events, EVENTS_LAND) is None
