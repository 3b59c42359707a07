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
from mqpipeline.lake.place import is_data, place
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.progress import Progress, progress_of
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
    events, last = place(str(tmp_path)).under("events"), 0

    def more(entries: int) -> None:
        nonlocal last
        emit(redis, last + 1, last + entries, every_ms=DAY_MS // 1000)
        last += entries

    def progress() -> Progress:
        return progress_of(opened(events, EVENTS_LAND.table), EVENTS_LAND)

    def entries() -> int:
        stream = progress().streams.get(STREAM)
        return stream.entries if stream else 0

    def in_a_batch() -> bool:
        """Batches have landed, and files of another one are in the making, or made."""
        files = sum(map(is_data, events.names(".parquet")))
        log = opened(events, EVENTS_LAND.table)
        if log is not None and log.files() and files > len(log.files()):
            return True
        if entries() == last:  # all batches were landed between two looks
            more(50)
        return False

    more(500)
    with killed_when(in_a_batch, store.url, tmp_path):
        pass
    more(200)
    landed = progress().batch
    assert landed > 0
    with killed_when(lambda: progress().batch > landed + 1, store.url, tmp_path):
        pass
    landing = landing_of(spark, store.url, str(tmp_path))
    landing.land_available()
    landing.close()
    assert entries() == last
    assert sorted(rows_of(read_events(spark, str(tmp_path)), "seq")) == [(seq,) for seq in range(1, last + 1)]
