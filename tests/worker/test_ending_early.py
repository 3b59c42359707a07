"""A worker that gets its signal before it can handle signals ends all the same."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mqnamesrv.store import EmbeddedStore
from testbed.eventually import eventually
from testbed.nameserver import environment
from testbed.process_tree import children

SLOW_TO_BE_READY = """
import time
from mqnamesrv.gunicorn_remoting import *

workers = 1
bind = "127.0.0.1:0"


def post_fork(server, worker):
    time.sleep(1.5)
"""
ENDS_WITHIN_S = 15.0  # gunicorn waits for 33 s for a worker that it has signalled


@pytest.mark.timeout(60)
def test_signalled_between_its_fork_and_its_loop(tmp_path: Path, store: EmbeddedStore) -> None:
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
