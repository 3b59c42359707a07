"""The probes of the containers, and the signs of life that they look for."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
import redis

from mqnamesrv.probe import PROBES, main
from mqnamesrv.store import EmbeddedStore
from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.connection import Connection
from testbed.eventually import eventually, stays
from testbed.redis_servers import free_ports
from worker.jobs.liveness_file import LONGEST_SILENCE_S

NO_SERVER = "redis://127.0.0.1:1/0"
ROOT = Path(__file__).resolve().parents[2]
START_S = 30.0


def environment(**more: str) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return inherited | {"MQNS_BIND_ADDRESS": "127.0.0.1", "MQNS_REDIS_URL": NO_SERVER} | more


@contextmanager
def running(env: Mapping[str, str], *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process as a container of the chart has it."""
    process = subprocess.Popen([sys.executable, "-m", *words], env=env, cwd=ROOT)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        finally:
            process.kill()


LATE = re.compile(
    r"^not ready: the event stream was not read for .* and leases were not watched for ", re.MULTILINE
)


def well(probe: str, env: Mapping[str, str]) -> Callable[[], bool]:
    return lambda: main([probe], env) == 0


@pytest.mark.parametrize("mode", ["permissive", "enforcing"])
def test_remoting_is_well_though_redis_is_away(mode: str, capfd: pytest.CaptureFixture[str]) -> None:
    env = environment(
        MQNS_LISTEN_PORT=str(free_ports(1)[0]), MQNS_REMOTING_WORKERS="1", MQNS_TLS_SERVER_MODE=mode
    )
    assert main(["remoting"], env) == 1
    assert capfd.readouterr().err == f"port {env['MQNS_LISTEN_PORT']} does not answer\n"
    with running(env, "gunicorn", "-c", "python:mqnamesrv.gunicorn_remoting", "wsgi:app"):
        eventually(well("remoting", env), START_S)
        stays(well("remoting", env), 1.0, 0.2)
        capfd.readouterr()

        def late() -> bool:
            """Whichever comes to light first; the line is among those that the worker logs."""
            assert main(["ready"], env) == 1
            return bool(LATE.search(capfd.readouterr().err))

        eventually(late, START_S)


def test_the_probe_asks_for_what_every_profile_answers(capfd: pytest.CaptureFixture[str]) -> None:
    """Else there would be a refusal in log and metrics for each probe of each pod."""
    port = free_ports(1)[0]
    env = environment(MQNS_LISTEN_PORT=str(port), MQNS_REMOTING_WORKERS="1", MQNS_ACCESS_PROFILE="secure")
    with running(env, "gunicorn", "-c", "python:mqnamesrv.gunicorn_remoting", "wsgi:app"):
        eventually(well("remoting", env), START_S)
        assert "access denied" not in capfd.readouterr().err
        with closing(Connection(port)) as caller:
            assert caller.ask(RequestCode.GET_NAMESRV_CONFIG).code == ResponseCode.NO_PERMISSION
    assert "access denied: config needs" in capfd.readouterr().err


def test_remoting_is_not_well_when_all_its_workers_stand_still() -> None:
    """As the probe's process sees it: a port that accepts connections, and no process behind it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        env = environment(MQNS_LISTEN_PORT=str(listener.getsockname()[1]))
        began = time.monotonic()
        assert main(["remoting"], env) == 1
        assert time.monotonic() - began < 5  # the chart's timeoutSeconds


@pytest.mark.parametrize("module", ["worker.jobs.rq_worker", "worker.jobs.scheduler"])
def test_job_processes_are_well_though_redis_is_away(module: str, tmp_path: Path) -> None:
    env = environment(MQNS_BEAT_FILE=str(tmp_path / "beat"))
    assert main(["beat"], env) == 1
    with running(env, module) as process:
        eventually(well("beat", env), START_S)
        first = (tmp_path / "beat").stat().st_mtime
        eventually(lambda: (tmp_path / "beat").stat().st_mtime > first, 10)
        assert process.poll() is None


def test_beats_go_on_while_there_is_work(tmp_path: Path, store: EmbeddedStore) -> None:
    files = {module: tmp_path / module for module in ("worker.jobs.rq_worker", "worker.jobs.scheduler")}
    with ExitStack() as stack:
        for module, file in files.items():
            env = environment(MQNS_BEAT_FILE=str(file), MQNS_REDIS_URL=store.url)
            stack.enter_context(running(env, module))
        for file in files.values():
            eventually(file.exists, START_S)
        first = {file: file.stat().st_mtime for file in files.values()}
        eventually(lambda: all(file.stat().st_mtime > first[file] for file in files.values()), START_S)


def test_the_rq_worker_starts_once_the_queue_is_there(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "store", keep=False)
    env = environment(MQNS_BEAT_FILE=str(tmp_path / "beat"), MQNS_REDIS_URL=store.url)
    with running(env, "worker.jobs.rq_worker") as process:
        eventually(well("beat", env), START_S)
        store.start()
        try:
            with redis.Redis.from_url(store.url) as client:
                eventually(lambda: client.scard("rq:workers"), START_S)
            assert process.poll() is None
        finally:
            process.terminate()
            process.wait(15)
            store.stop()


def test_the_waiting_rq_worker_ends_at_sigterm(tmp_path: Path) -> None:
    env = environment(MQNS_BEAT_FILE=str(tmp_path / "beat"))
    with running(env, "worker.jobs.rq_worker") as process:
        eventually(well("beat", env), START_S)
        process.terminate()
        assert process.wait(10) == 0


def test_an_old_liveness_file_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "beat"
    env = environment(MQNS_BEAT_FILE=str(file))
    file.touch()
    assert main(["beat"], env) == 0
    long_ago = time.time() - LONGEST_SILENCE_S - 1
    os.utime(file, (long_ago, long_ago))
    assert main(["beat"], env) == 1
    assert capfd.readouterr().err == f"{file} was not touched for {LONGEST_SILENCE_S + 1:.0f} s\n"


def test_an_unset_liveness_file_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["beat"], environment()) == 1
    assert capfd.readouterr().err == "beatFile is not set\n"


def test_a_probe_reads_no_library_of_the_store(tmp_path: Path) -> None:
    """It runs each few seconds in each pod, and these would double what it costs."""
    (tmp_path / "beat").touch()
    code = "import sys, os, mqnamesrv.probe as p; print(p.main(['beat'], os.environ), {'redis', 'rq'} & {*sys.modules})"
    env = environment(MQNS_BEAT_FILE=str(tmp_path / "beat"))
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0 set()\n", "")


@pytest.mark.parametrize("words", [[], ["other"], ["beat", "remoting"]])
def test_wrong_usage(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words, {}) == 2
    assert "|".join(PROBES) in capfd.readouterr().err
