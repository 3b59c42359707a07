"""kill -9 of a real streaming process, with all that it started: every entry is there once afterwards."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from redis import Redis

from mqnamesrv.store import EmbeddedStore
from mqpipeline.landing.progress import Progress
from testbed.eventually import eventually
from tests.mqpipeline.landing.streams import DAY_MS, STREAM, emit

STARTS_WITHIN_S = 300.0
PROJECT = Path(__file__).parents[3]
FOLLOW = (sys.executable, "-m", "tests.mqpipeline.landing.follow")


@contextmanager
def killed_when(condition: Callable[[], bool], url: str, root: Path) -> Iterator[None]:
    """A streaming process until then."""
    process = subprocess.Popen(
        [*FOLLOW, url, str(root)], cwd=PROJECT, start_new_session=True, stderr=subprocess.DEVNULL
    )
    try:
        eventually(condition, STARTS_WITHIN_S)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_killed_at_any_point_each_entry_is_there_once(
    redis: Redis, store: EmbeddedStore, tmp_path: Path
) -> None:
    folder = tmp_path / "events"

    def progress() -> Progress:
        found = folder / "_progress.json"
        return msgspec.json.decode(found.read_bytes(), type=Progress) if found.exists() else Progress()

    def batch() -> int:
        return progress().batch

    def writing(number: int) -> bool:
        """Rows of the batch are in the making, or made."""
        with suppress(FileNotFoundError):  # a folder was moved to its place meanwhile
            return bool([*folder.glob(f"**/batches={number:012d}-*")]) and batch() < number
        return False

    emit(redis, 1, 500, every_ms=DAY_MS // 1000)
    with killed_when(lambda: writing(2), store.url, tmp_path):
        pass
    emit(redis, 501, 600, every_ms=DAY_MS // 1000)
    landed = batch()
    with killed_when(lambda: batch() > landed + 1, store.url, tmp_path):
        pass
    assert 0 < batch() < 12
    rest = subprocess.run(
        [*FOLLOW, store.url, str(tmp_path), "rest"], cwd=PROJECT, capture_output=True, text=True
    )
    assert progress().streams[STREAM].entries == 600, rest.stderr
    assert sorted(map(int, rest.stdout.split())) == list(range(1, 601))
