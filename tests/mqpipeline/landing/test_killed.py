"""kill -9 of a real streaming process, with all that it started: every entry is there once afterwards."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from redis import Redis

from mqnamesrv.store import EmbeddedStore
from mqpipeline.lake.log import opened
from mqpipeline.lake.place import place
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.progress import WRITER, Progress, progress_of
from mqpipeline.landing.reading import read_events
from testbed.eventually import eventually
from tests.mqpipeline.landing.follow import landing_of
from tests.mqpipeline.landing.streams import DAY_MS, STREAM, emit
from tests.mqpipeline.rows import rows_of

STARTS_WITHIN_S = 300.0
PROJECT = Path(__file__).parents[3]


@contextmanager
def killed_when(condition: Callable[[], bool], url: str, root: Path) -> Iterator[None]:
    """A streaming process until then."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.mqpipeline.landing.follow", url, str(root)],
        cwd=PROJECT,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(condition, STARTS_WITHIN_S)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_killed_at_any_point_each_entry_is_there_once(
    spark: SparkSession, redis: Redis, store: EmbeddedStore, tmp_path: Path
) -> None:
    events = place(str(tmp_path)).under("events")

    def progress() -> Progress:
        return progress_of(opened(events, EVENTS_LAND.table), EVENTS_LAND)

    def batch() -> int:
        return progress().batch

    def writing(number: int) -> bool:
        """Files of the batch are in the making, or made."""
        log = opened(events, EVENTS_LAND.table)
        return (
            log is not None
            and log.batch(WRITER) == number - 1
            and len(events.names(".parquet")) > len(log.files())
        )

    emit(redis, 1, 500, every_ms=DAY_MS // 1000)
    with killed_when(lambda: writing(2), store.url, tmp_path):
        pass
    emit(redis, 501, 600, every_ms=DAY_MS // 1000)
    landed = batch()
    with killed_when(lambda: batch() > landed + 1, store.url, tmp_path):
        pass
    assert 0 < batch() < 12
    landing = landing_of(spark, store.url, str(tmp_path))
    landing.land_available()
    landing.close()
    assert progress().streams[STREAM].entries == 600
    assert sorted(rows_of(read_events(spark, str(tmp_path)), "seq")) == [(seq,) for seq in range(1, 601)]
