"""Several processes at one table: a second landing is refused, compaction goes on beside the first, and each entry is
there once."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from redis import Redis

from mqpipeline.lake.log import OtherWriter, opened, this_process
from mqpipeline.lake.maintenance import compact, vacuum
from mqpipeline.lake.place import place
from mqpipeline.landing.check import check
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.progress import progress_of
from mqpipeline.schemas import EVENTS
from tests.mqpipeline.landing.conftest import Make
from tests.mqpipeline.landing.streams import DAY_MS, STREAM, emit, landed

EVERY_MS = DAY_MS // 50


def once(spark: SparkSession, root: Path, entries: int) -> bool:
    counted = Counter(seq for _, _, seq, _ in landed(spark, root).elements())
    return counted == Counter(range(1, entries + 1))


def test_of_two_landings_one_is_refused(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    emit(redis, 1, 2)
    make().land_available()
    landings = [make(maxEntriesPerBatch="5") for _ in range(2)]
    emit(redis, 3, 60)
    together = threading.Barrier(2)
    refused = []

    def land(landing: Any) -> None:
        together.wait()
        try:
            landing.land_available()
        except OtherWriter as error:
            refused.append(str(error))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(land, landings))
    assert len(refused) == 1
    assert refused[0].startswith("another process has written batch ")
    assert f"events: {this_process()}. End one of the two" in refused[0]
    assert once(spark, tmp_path, 60)
    assert check(place(str(tmp_path)).under("events"), EVENTS_LAND).findings == []
    assert make().land_available().streams[STREAM].entries == 60  # the next start of either goes on


def test_positions_are_those_of_the_version_that_was_looked_at(
    redis: Redis, make: Make, tmp_path: Path
) -> None:
    """Not those of a commit since: a report beside a landing would count entries that it does not see."""
    emit(redis, 1, 2)
    make().land_available()
    log = opened(place(str(tmp_path)).under("events"), EVENTS)
    emit(redis, 3, 4)
    make().land_available()
    assert progress_of(log, EVENTS_LAND).streams[STREAM].seq == 2


def test_two_that_create_the_table(spark: SparkSession, redis: Redis, make: Make, tmp_path: Path) -> None:
    landings = [make(), make()]
    emit(redis, 1, 3)
    landings[0].land_available()
    with pytest.raises(OtherWriter):
        landings[1].land_available()
    assert once(spark, tmp_path, 3)


def test_compaction_and_vacuum_beside_a_landing(
    spark: SparkSession, redis: Redis, make: Make, tmp_path: Path
) -> None:
    batches, of_each = 30, 4
    ended = threading.Event()
    fewer: list[int] = []

    def rearrange() -> None:
        while not ended.is_set():
            log = opened(place(str(tmp_path)).under("events"), EVENTS)
            if log is not None:
                fewer.append(compact(log))
                vacuum(log)

    with ThreadPoolExecutor(1) as threads:
        rearranging = threads.submit(rearrange)
        landing = make()
        try:
            for batch in range(batches):
                emit(redis, batch * of_each + 1, (batch + 1) * of_each, every_ms=EVERY_MS)
                landing.land_available()
        finally:
            ended.set()
        rearranging.result()
    assert sum(fewer) > 1
    assert landing.progress.batch == batches
    assert once(spark, tmp_path, batches * of_each)
    assert check(place(str(tmp_path)).under("events"), EVENTS_LAND).findings == []
