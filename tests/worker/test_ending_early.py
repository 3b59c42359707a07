"""A worker that is told to end before it can listen to signals ends all the same."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.store import EmbeddedStore
from tests.harness.nameserver import environment
from tests.harness.patience import eventually
from tests.harness.process_tree import children

SLOW_TO_BE_READY = """
import time
from launcher.gunicorn_remoting import *

workers = 1
bind = "127.0.0.1:0"


def post_fork(server, worker):
    time.sleep(1.5)
"""
ENDS_WITHIN_S = 15.0  # gunicorn waits for 33 s for a worker that it has told


@pytest.mark.timeout(60)
def test_told_between_its_fork_and_its_loop(tmp_path: Path, store: EmbeddedStore) -> None:
    config = tmp_path / "slow.py"
    config.write_text(SLOW_TO_BE_READY)
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "-c", str(config), "wsgi:app"],
        env=environment(tmp_path, {"redisUrl": store.url}) | {"PYTHONPATH": str(root)},
        cwd=root,
    ) as master:
        eventually(lambda: children(master.pid), ENDS_WITHIN_S)
        os.kill(master.pid, signal.SIGTERM)
        try:
            assert master.wait(ENDS_WITHIN_S) == 0
        finally:
            master.kill()
