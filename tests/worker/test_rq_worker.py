"""The worker of the job queue as a process."""

import os
import signal
import subprocess
import sys

import pytest
from rq import Worker

from launcher.store import EmbeddedStore
from registry.store import connect
from tests.harness.patience import eventually

STARTS_WITHIN_S, ENDS_WITHIN_S = 20.0, 20.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_told_to_end_while_idle_it_ends_well(store: EmbeddedStore, number: signal.Signals) -> None:
    env = os.environ | {"MQNS_REDIS_URL": store.url}
    process = subprocess.Popen([sys.executable, "-m", "worker.rq_worker"], env=env)
    try:
        with connect(store.url) as queue:
            eventually(
                lambda: [one.get_state() for one in Worker.all(connection=queue)] == ["idle"], STARTS_WITHIN_S
            )
        process.send_signal(number)
        assert process.wait(ENDS_WITHIN_S) == 0
    finally:
        process.kill()
