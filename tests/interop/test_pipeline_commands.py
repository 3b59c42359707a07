"""`mqpipeline` as a process among others: ended from a terminal, run by the name server's scheduler."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
import redis as redis_py
from rq import Queue
from rq.job import Job
from rq.results import Result
from rq.serializers import JSONSerializer

from mqnamesrv.store import EmbeddedStore
from registry.options.catalogue import Options
from testbed.eventually import eventually
from tests.mqpipeline import worked_example
from tests.mqpipeline.conftest import QUICKLY_COMPILED
from worker.jobs.timetable import timetable

PATIENCE_S = 300
NAMESPACE = "default"
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path) -> Iterator[Start]:
    """Starts a command on a store that has the worked example, in a process group as a terminal makes one.

    What Spark does is as users have it: this is the test of whole runs with code that Spark generates."""
    raw: Any = worked_example.RAW
    for entry_id, fields in raw:
        redis.xadd(f"ns:{{{NAMESPACE}}}:events", fields, id=entry_id)
    started: list[subprocess.Popen[str]] = []
    # a job in the background ignores it, and so would what it starts
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)

    def start(command: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "mqpipeline.cli", command, "--warehouse", str(tmp_path)]
        environment = {**os.environ, "REDIS_URL": store.url, "JDK_JAVA_OPTIONS": QUICKLY_COMPILED}
        process = subprocess.Popen(
            argv, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield start
    signal.signal(signal.SIGINT, ours)
    for process in started:
        process.kill()


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("run", 130, ["mqpipeline: interrupted"]),
        ("stream", 0, ["mqpipeline: ends after the step under way; Ctrl-C again ends it at once"]),
    ],
)
def test_ctrl_c_ends_it_in_a_line(command: str, code: int, says: list[str], start: Start) -> None:
    """Java and Spark's Python processes get it too."""
    process = start(command)
    assert process.stderr is not None
    assert any("reading all that was landed" in line for line in process.stderr)
    os.killpg(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    assert [line for line in rest.splitlines() if line.startswith("mqpipeline: ")] == says
    assert "Traceback" not in rest


@pytest.fixture
def job(store: EmbeddedStore) -> Job:
    """A run, asked for as the name server's scheduler does."""
    run = timetable(Options(pipeline_every_millis=PATIENCE_S * 1000))[-1]
    patient = redis_py.Redis.from_url(store.url, socket_timeout=PATIENCE_S + 1)
    queue = Queue(run.queue_of(NAMESPACE), connection=patient, serializer=JSONSerializer)
    asked: Job = queue.enqueue_call(str(run.job), timeout=run.timeout_s)
    return asked


def test_a_run_of_the_timetable(job: Job, redis: redis_py.Redis, start: Start) -> None:
    process = start("work")
    result = job.latest_result(timeout=PATIENCE_S)
    assert result is not None
    assert result.type == Result.Type.SUCCESSFUL, result.exc_string
    assert result.return_value == {"run": 1, "as_of_ms": ANY}
    assert redis.hget(f"ns:{{{NAMESPACE}}}:report:meta", "events") == str(len(worked_example.RAW))
    process.terminate()
    assert process.wait(timeout=PATIENCE_S) == 0


def test_a_run_whose_worker_was_killed_breaks_off(
    job: Job, redis: redis_py.Redis, tmp_path: Path, start: Start
) -> None:
    """The next worker's run has the tables for itself."""
    process = start("work")
    eventually(lambda: any(tmp_path.iterdir()), PATIENCE_S)
    process.kill()
    result = job.latest_result(timeout=PATIENCE_S)
    assert result is not None
    assert "the worker of this run is gone" in str(result.exc_string)
    assert not redis.exists(f"ns:{{{NAMESPACE}}}:report:meta")
