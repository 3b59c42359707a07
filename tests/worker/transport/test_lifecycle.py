"""How workers start, balance connections, drain and end under gunicorn."""

import os
import signal
import time
from collections import Counter, deque
from pathlib import Path

import pytest

from testbed.eventually import eventually
from tests.worker.transport.client import Client, Server, request, serving
from tests.worker.transport.echo_worker import ECHO, GO_AWAY, LATE

pytestmark = pytest.mark.usefixtures("transport")


def ends(server: Server) -> list[bool]:
    """`shutting_down` of every connection that was open when its worker began to end."""
    return [shutting_down for service in server.stopped for _, shutting_down in service["ends"]][1:]


def test_connections_spread_over_the_workers(tmp_path: Path) -> None:
    with serving(tmp_path, "--preload", workers=2) as server:
        eventually(lambda: server.log.count("accepting connections") == 2)
        workers = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
        for pid in workers:
            os.kill(int(pid), signal.SIGSTOP)
        clients = [server.connect() for _ in range(400)]
        for pid in workers:
            os.kill(int(pid), signal.SIGCONT)
        burst = Counter(client.about()["pid"] for client in clients)
        for client in clients:
            client.sock.close()
        one_by_one: Counter[int] = Counter()
        clients = []
        for _ in range(200):
            clients.append(server.connect())
            one_by_one[clients[-1].about()["pid"]] += 1
        for client in clients:
            client.sock.close()
        assert len(burst) == 2
        assert min(burst.values()) >= 80
        assert min(one_by_one.values()) >= 40, one_by_one


def test_a_worker_that_ends_finishes_what_is_under_way(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        idle, late = server.connect(), server.connect()
        idle.ask(ECHO)
        late.send(request(LATE, b"late", ms=1900))
        late_since = time.monotonic()
        eventually(lambda: late.sock.fileno() > 0 and time.monotonic() - late_since > 0.1)
        server.signal(signal.SIGTERM)
        eventually(lambda: "draining" in server.log)
        with server.connect() as new:  # routed here a moment ago
            assert new.ask(ECHO, b"new").body == b"new"
            assert "the service announces no more" in server.log
            assert idle.ask(ECHO, b"idle").body == b"idle"
            assert idle.rest() == b""
            assert new.rest() == b""
        assert late.answer().body == b"late"
        assert late.rest() == b""
        assert server.ended() == 0
        assert time.monotonic() - late_since >= 1.5
        assert ends(server) == [True, True, True]
        assert [service["open"] for service in server.stopped] == [0]


def test_a_graceful_worker_sends_its_clients_away_and_closes_bit_by_bit(tmp_path: Path) -> None:
    with serving(tmp_path, enable_shutdown_gracefully=True, shutdown_wait_time_seconds=3) as server:
        clients = [server.connect() for _ in range(20)]
        for client in clients:
            client.ask(ECHO)
        server.signal(signal.SIGTERM)
        began = time.monotonic()
        eventually(lambda: "draining" in server.log)
        assert clients[-1].ask(ECHO).code == GO_AWAY
        clients[-1].sock.close()
        clients[-1] = server.connect()
        assert clients[-1].ask(ECHO).code == 0  # sent away once is enough, while it still accepts
        gone = []
        for client in clients:
            assert client.rest() == b""
            gone.append(time.monotonic() - began)
        assert server.ended() == 0
        assert 1.4 < gone[0] < gone[-2] - 0.5
        assert gone[-2] < 4
        assert ends(server) == [True] * 21


def test_a_graceful_worker_without_connections_does_not_wait(tmp_path: Path) -> None:
    with serving(tmp_path, enable_shutdown_gracefully=True, shutdown_wait_time_seconds=20) as server:
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.ended() == 0
        assert time.monotonic() - began < 10


def test_a_drain_ends_before_gunicorn_kills(tmp_path: Path) -> None:
    with (
        serving(
            tmp_path,
            "--graceful-timeout",
            "4",
            enable_shutdown_gracefully=True,
            shutdown_wait_time_seconds=30,
        ) as server,
        server.connect() as client,
    ):
        client.send(request(LATE, ms=60_000))
        client.ask(ECHO)
        server.signal(signal.SIGTERM)
        assert server.ended() == 0
        assert "was sent SIGKILL" not in server.log
        assert ends(server) == [True]


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGINT])
def test_a_quick_end_is_quick_and_releases_no_broker(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path, workers=2) as server:
        eventually(lambda: server.log.count("accepting connections") == 2)
        clients = [server.connect() for _ in range(10)]
        for client in clients:
            client.ask(ECHO)
        clients[0].send(request(LATE, ms=60_000))
        server.signal(number)
        assert server.ended() == 0
        assert "draining" not in server.log
        assert [shutting_down for service in server.stopped for _, shutting_down in service["ends"]].count(
            True
        ) == 10
        assert len(server.stopped) == 2


def test_a_reload_fails_no_new_connection(tmp_path: Path) -> None:
    with serving(tmp_path, "--graceful-timeout", "10") as server, server.connect() as old:
        before = old.about()["pid"]
        server.signal(signal.SIGHUP)
        seen = set()
        last = time.monotonic() + 2.5
        while time.monotonic() < last:
            with server.connect() as client:
                seen.add(client.about()["pid"])
            time.sleep(0.002)
        assert len(seen) == 2
        assert old.rest() == b""
        with server.connect() as client:
            assert client.about()["pid"] in seen - {before}


def test_a_connection_that_was_accepted_last_has_time_for_its_first_request(tmp_path: Path) -> None:
    """A busy client sends later than it connects; what replaces the worker is slow, as on a busy machine."""
    refusals = tmp_path / "refusals"
    with serving(
        tmp_path / "server", "--graceful-timeout", "10", env={"ECHO_REFUSALS": str(refusals)}
    ) as server:
        refusals.write_text("the next worker fails once")
        server.signal(signal.SIGHUP)
        seen = set()
        waiting: deque[tuple[float, Client]] = deque()
        last = time.monotonic() + 2.5
        while waiting or time.monotonic() < last:
            if time.monotonic() < last:
                waiting.append((time.monotonic() + 0.3, server.connect()))
            while waiting and waiting[0][0] <= time.monotonic():
                with waiting.popleft()[1] as client:
                    seen.add(client.about()["pid"])
            time.sleep(0.01)
        assert len(seen) == 2


def test_a_worker_ends_when_its_master_is_gone(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.connect() as client:
        pid = client.about()["pid"]
        server.signal(signal.SIGKILL)
        assert client.rest() == b""
        eventually(lambda: not running(pid))
        assert ends(server) == [True]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_worker_that_cannot_start_makes_way_for_the_next(tmp_path: Path) -> None:
    refusals = tmp_path / "refusals"
    refusals.write_text("x")
    with (
        serving(tmp_path / "server", env={"ECHO_REFUSALS": str(refusals)}) as server,
        server.connect() as client,
    ):
        assert client.ask(ECHO, b"at last").body == b"at last"
        assert "the worker could not serve" in server.log


def test_a_worker_that_is_ended_while_it_starts_ends(tmp_path: Path) -> None:
    with serving(tmp_path, wait=False, env={"ECHO_START_S": "60"}) as server:
        eventually(lambda: "the service starts" in server.log)
        server.signal(signal.SIGTERM)
        assert server.ended() == 0
        assert server.stopped == [{"ends": [], "open": 0}]
