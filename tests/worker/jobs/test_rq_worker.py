"""The worker of the job queue as a process."""

import io
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rq import Queue, Worker
from rq.exceptions import StopRequested
from rq.job import JobStatus
from rq.serializers import JSONSerializer
from rq.worker import WorkerStatus

from mqnamesrv.store import EmbeddedStore
from registry.options.catalogue import Options
from registry.store.connect import connect, connect_queue
from testbed.eventually import eventually
from worker.jobs import rq_worker
from worker.jobs.rq_worker import worker
from worker.jobs.timetable import JOBS
from worker.logs import log_lines

STARTS_WITHIN_S, ENDS_WITHIN_S = 20.0, 20.0


@contextmanager
def idle(store: EmbeddedStore) -> Iterator["subprocess.Popen[str]"]:
    """One that waits for work; what it logs can be read once it has ended."""
    env = os.environ | {"MQNS_REDIS_URL": store.url}
    argv = [sys.executable, "-m", "worker.jobs.rq_worker"]
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
def test_terminated_while_idle_it_ends_well(store: EmbeddedStore, number: signal.Signals) -> None:
    with idle(store) as process:
        process.send_signal(number)
        assert process.wait(ENDS_WITHIN_S) == 0


def test_terminated_while_the_queue_is_away_it_ends_well(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path, keep=False)
    store.start()
    try:
        with idle(store) as process:
            store.stop()
            process.send_signal(signal.SIGTERM)
            _, logged = process.communicate(timeout=ENDS_WITHIN_S)
            assert process.returncode == 0
            assert "ends without signing off" in logged
            assert "RQ drops its entry" in logged
            assert "Traceback" not in logged
    finally:
        store.stop()


class Signalled(io.StringIO):
    """Standard error, on which a line is written when the signal comes."""

    def write(self, text: str) -> int:
        raise StopRequested


def test_terminated_while_it_writes_a_line_it_says_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(**_: object) -> None:
        line = logging.makeLogRecord({"msg": "could not connect"})
        logging.StreamHandler(Signalled()).handle(line)

    monkeypatch.setattr(logging, "raiseExceptions", True)
    monkeypatch.setattr(log_lines, "to_standard_error", lambda _: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(rq_worker, "await_queue", lambda _: None)
    upkeep = SimpleNamespace(work=work, log=logging.getLogger("none"), _shutdown_requested_date=1)
    monkeypatch.setattr(rq_worker, "worker", lambda _: upkeep)
    with pytest.raises(SystemExit, match="0"):
        rq_worker.main()
    assert "Traceback" not in capsys.readouterr().err


def test_terminated_while_the_queue_stands_still_it_ends_soon(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path, keep=False)
    store.start()
    try:
        with idle(store) as process:
            os.kill(store.child.pid, signal.SIGSTOP)
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            _, logged = process.communicate(timeout=ENDS_WITHIN_S)
            assert time.monotonic() - began < 8, "it is killed after 10 s"
            assert process.returncode == 0
            assert "ends without signing off" in logged
            assert "Traceback" not in logged
    finally:
        os.kill(store.child.pid, signal.SIGCONT)
        store.stop()


def test_a_stop_that_was_caught_where_it_was_raised_is_not_lost(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    upkeep: Any = worker(Options(redis_url=store.url))
    upkeep.heartbeat()
    with suppress(StopRequested):  # as `logging` does
        upkeep.request_stop(signal.SIGTERM, None)
    with pytest.raises(StopRequested):
        upkeep.heartbeat()
    upkeep.set_state(WorkerStatus.BUSY)
    upkeep.heartbeat()


def test_a_queue_that_takes_no_writes_is_logged_in_a_line(tmp_path: Path) -> None:
    """It is started again each 5 s, and wrote two tracebacks each time."""
    store = EmbeddedStore(tmp_path, keep=False)
    store.start()
    try:
        with idle(store) as process:
            with connect(store.url) as queue:
                queue.config_set("min-replicas-to-write", 1)
            _, logged = process.communicate(timeout=ENDS_WITHIN_S)
            assert process.returncode == 1
            assert "since its queue refuses: " in logged
            assert "Traceback" not in logged
    finally:
        store.stop()


def test_a_job_that_fails_is_logged_with_its_cause_and_what_comes_next(store: EmbeddedStore) -> None:
    with idle(store) as process, connect_queue(store.url) as connection:
        queue = Queue(JOBS[0].queue_of("default"), connection=connection, serializer=JSONSerializer)
        job = queue.enqueue_call("builtins.int", args=("no number",), job_id="j1")
        eventually(lambda: job.get_status() == JobStatus.FAILED, STARTS_WITHIN_S)
        process.send_signal(signal.SIGTERM)
        _, logged = process.communicate(timeout=ENDS_WITHIN_S)
    assert "[ERROR] worker.jobs.rq_worker job j1 failed: invalid literal for int()" in logged
    assert "the timetable runs it again" in logged


def test_a_queue_that_can_be_reached_again_is_logged(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    urls = ["redis://127.0.0.1:1/0", store.url]

    def one_that_comes_back(_: float) -> None:
        connection.connection_pool = connect_queue(urls[1]).connection_pool

    with connect_queue(urls[0], socket_connect_timeout=1.0) as connection:
        monkeypatch.setattr(rq_worker, "_connection", lambda *_, **__: connection)
        monkeypatch.setattr("worker.jobs.rq_worker.time.sleep", one_that_comes_back)
        rq_worker.await_queue(Options())
    assert [line.partition(":")[0] for line in caplog.messages] == [
        "the job queue cannot be reached",
        "the job queue can be reached again",
    ]
