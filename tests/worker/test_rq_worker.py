"""The worker of the job queue as a process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rq import Worker

from launcher.store import EmbeddedStore
from registry.store import connect
from tests.harness.patience import eventually

STARTS_WITHIN_S, ENDS_WITHIN_S = 20.0, 20.0


@contextmanager
def idle(store: EmbeddedStore) -> Iterator["subprocess.Popen[str]"]:
    """One that waits for work; what it logs can be read once it has ended."""
    env = os.environ | {"MQNS_REDIS_URL": store.url}
    argv = [sys.executable, "-m", "worker.rq_worker"]
    process = subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True)
    try:
        with connect(store.url) as queue:
            eventually(
                lambda: [one.get_state() for one in Worker.all(connection=queue)] == ["idle"], STARTS_WITHIN_S
            )
        yield process
    finally:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_told_to_end_while_idle_it_ends_well(store: EmbeddedStore, number: signal.Signals) -> None:
    with idle(store) as process:
        process.send_signal(number)
        assert process.wait(ENDS_WITHIN_S) == 0


def test_told_to_end_while_the_queue_is_away_it_ends_well(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path, keep=False)
    store.start()
    try:
        with idle(store) as process:
            store.stop()
            process.send_signal(signal.SIGTERM)
            _, logged = process.communicate(timeout=ENDS_WITHIN_S)
            assert process.returncode == 0
            assert "the job worker could not sign off" in logged
            assert "Traceback" not in logged
    finally:
        store.stop()
