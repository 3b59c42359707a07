"""From the command to the first answer: ports, a store that is not there yet, signals."""

import errno
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from mqnamesrv.listeners import bind, listens, port_of
from mqnamesrv.store import EmbeddedStore, await_answer, programs
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.remoting_command import Command
from testbed.eventually import eventually
from testbed.ports import free_port
from tests.mqnamesrv.process import COMMAND, environment, mqnamesrv

ROOT = Path(__file__).resolve().parents[2]
ENDS_WITHIN_S = 20
"""On a busy machine; where signals are not looked at, it ends with 255 after 10 s, or in a minute."""


def test_a_port_refuses_connections_until_a_worker_can_answer(tmp_path: Path) -> None:
    """A load balancer whose check is a connection would else send peers to a server that waits for its store."""
    port, store = free_port(), EmbeddedStore(tmp_path / "store", keep=False)
    env = environment(tmp_path, REDIS_URL=store.url, MQNS_LISTEN_PORT=str(port))
    with (tmp_path / "output").open("w") as output:
        process = subprocess.Popen([COMMAND], env=env, stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: _is_claimed(port))
        assert _connect(port) == errno.ECONNREFUSED
        store.start()
        eventually(lambda: _connect(port) == 0)
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.sendall(encode(Command(RequestCode.GET_NAMESRV_CONFIG, opaque=7)))
            assert connection.recv(1)
    finally:
        process.terminate()
        process.wait(timeout=30)
        store.stop()


def test_an_address_is_taken_before_its_process_listens(tmp_path: Path) -> None:
    """Linux lets two sockets with SO_REUSEADDR bind while neither listens."""
    port = str(free_port())
    env = environment(tmp_path, REDIS_URL=f"unix://{tmp_path}/none", MQNS_LISTEN_PORT=port)
    refusal = f"cannot listen on 127.0.0.1:{port}: "
    with starting(env) as first:
        eventually(lambda: _is_claimed(port))
        second = mqnamesrv(env=env)
        assert first.poll() is None
    assert (second.returncode, refusal in second.stderr) == (255, True), second.stderr
    both = mqnamesrv(env=env | {"MQNS_HTTP_PORT": port, "MQNS_HTTP_BIND_ADDRESS": "127.0.0.1"})
    assert (both.returncode, refusal in both.stderr) == (255, True), both.stderr


def test_a_store_that_evicts_is_refused(tmp_path: Path, store: EmbeddedStore) -> None:
    """By the command, and by the workers' gunicorn where it is started alone."""
    with redis.Redis.from_url(store.url) as client:
        client.config_set("maxmemory", "64mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            env = environment(tmp_path, REDIS_URL=store.url, MQNS_LISTEN_PORT=str(free_port()))
            refused = mqnamesrv(env=env)
            alone = subprocess.run(
                [sys.executable, "-m", "gunicorn", "-c", "python:mqnamesrv.gunicorn_remoting", "wsgi:app"],
                env=env, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False,
            )  # fmt: skip
            with starting(env | {"MQNS_ALLOW_EVICTING_STORE": "true"}) as process:
                eventually(lambda: _connect(int(env["MQNS_LISTEN_PORT"])) == 0)
                assert process.poll() is None
        finally:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", 0)
    assert (refused.returncode, "maxmemory-policy is allkeys-lru" in refused.stderr) == (255, True), (
        refused.stderr
    )
    assert (alone.returncode, "allowEvictingStore" in alone.stderr) == (1, True), alone.stderr


def test_a_socket_that_is_only_bound_is_not_ready() -> None:
    with bind("127.0.0.1", 0) as first, bind("127.0.0.1", port_of(first)) as second:
        first.listen()
        assert (listens(first), listens(second)) == (True, False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_it_ends_at_once_while_its_store_is_away(tmp_path: Path, number: signal.Signals) -> None:
    port = str(free_port())
    with starting(environment(tmp_path, REDIS_URL="redis://127.0.0.1:1", MQNS_LISTEN_PORT=port)) as process:
        eventually(lambda: _is_claimed(port))
        process.send_signal(number)
        assert process.wait(timeout=ENDS_WITHIN_S) == 0


def test_it_ends_at_once_while_its_store_loads(tmp_path: Path) -> None:
    words = ["--port", "0", "--unixsocket", f"{tmp_path}/sock", "--dir", str(tmp_path), "--save", ""]
    slow = ["--key-load-delay", "1000000", "--loading-process-events-interval-bytes", "1024"]
    argv = [str(next(iter(programs().values()))), *words, "--rdbcompression", "no", *slow]
    url, port = f"unix://{tmp_path}/sock", str(free_port())
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as store, redis.Redis.from_url(url) as data:
        await_answer(url)
        data.mset({f"key-{number}": "x" * 1024 for number in range(60)})
        data.save()
        store.terminate()
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as store:
        try:
            with starting(environment(tmp_path, REDIS_URL=url, MQNS_LISTEN_PORT=port)) as process:
                eventually(lambda: _is_claimed(port))
                process.terminate()
                assert process.wait(timeout=ENDS_WITHIN_S) == 0
        finally:
            store.kill()


@contextmanager
def starting(env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """One that is not waited for, killed if it still runs."""
    with subprocess.Popen(
        [COMMAND], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _is_claimed(port: int | str) -> bool:
    """Whether a mqnamesrv has bound it. To try to bind it as well would keep that one from it."""
    return f"@mqnamesrv 127.0.0.1:{port}" in Path("/proc/net/unix").read_text()


def _connect(port: int) -> int:
    with socket.socket() as peer:
        return peer.connect_ex(("127.0.0.1", port))
