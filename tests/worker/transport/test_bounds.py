"""What a connection may not do for long, or too much of."""

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.eventually import eventually
from tests.worker.transport.client import Server, request, serving
from tests.worker.transport.echo_worker import ECHO, LATE, LONG, PUSHES

FRAME_LIMITS = (
    '{"known":1000000,"unknown":1000000,"host":10000000,"admitted":1000000,'
    '"rate":100000,"measured_s":0.3,"crowded_s":0.3}'
)

PROXY = b"PROXY TCP4 10.0.0.%d 5.6.7.8 1111 9876\r\n"
UNREAD_BYTES = 2_000_000

pytestmark = pytest.mark.usefixtures("transport")


@pytest.fixture(scope="module")
def bounded(transport: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Bounds small enough to be seen."""
    with serving(
        tmp_path_factory.mktemp("bounded"),
        env={"ECHO_OPENING_S": "0.3", "ECHO_FRAME_LIMITS": FRAME_LIMITS},
        server_channel_max_idle_time_seconds=2,
        max_connections=20,
        write_buffer_limit_bytes=1 << 20,
        unread_answers_limit_bytes=UNREAD_BYTES,
    ) as running:
        yield running


def test_an_idle_connection_is_closed(bounded: Server) -> None:
    with bounded.connect() as client:
        began = time.monotonic()
        assert client.rest() == b""
        assert time.monotonic() - began >= 1.95


def test_a_connection_in_use_is_not(bounded: Server) -> None:
    with bounded.connect() as client:
        for _ in range(3):
            client.ask(ECHO)
            time.sleep(0.8)
        assert client.ask(LATE, b"here", ms=10).body == b"here"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"PROXY TCP4 1.2", id="PROXY header"),
        pytest.param(b"\x16\x03\x01", id="TLS handshake"),
    ],
)
def test_a_start_that_is_not_finished_is_closed_sooner(bounded: Server, data: bytes) -> None:
    with bounded.connect() as client:
        began = time.monotonic()
        client.send(data)
        assert client.rest() == b""
        assert 0.2 <= time.monotonic() - began < 1.9


def test_connections_over_the_limit_are_closed_at_once(bounded: Server) -> None:
    clients = [bounded.connect() for _ in range(20)]
    for client in clients:
        client.ask(ECHO)
    with bounded.connect() as refused:
        assert refused.rest() == b""
    clients.pop().sock.close()
    clients[0].ask(ECHO)

    def another() -> bool:
        with bounded.connect() as client:
            client.send(request(ECHO))
            return client.rest()[:1] == b"\0"

    assert another()
    assert (
        bounded.log.count("refused: there are 20; raise maxConnections or ulimit -n, or run more workers")
        == 1
    )
    for client in clients:
        client.sock.close()


def test_connections_of_a_host_over_its_limit_are_closed_and_others_not(tmp_path: Path) -> None:
    limited = serving(tmp_path, max_connections_per_ip=3, proxy_trusted_cidrs="")
    with limited as server, ExitStack() as stack:
        full = [stack.enter_context(server.connect("127.68.0.1")) for _ in range(3)]
        for client in full:
            client.ask(ECHO)
        with server.connect("127.68.0.1") as refused:
            assert refused.rest() == b""
        with server.connect("127.68.0.2") as other:
            other.ask(ECHO)
        full[0].sock.close()
        eventually(lambda: answered(server, "127.68.0.1"))
        assert "its host has 3 (maxConnectionsPerIp)" in server.log


def test_connections_of_a_balancer_count_as_those_of_the_peers_that_it_names(tmp_path: Path) -> None:
    limited = serving(tmp_path, max_connections_per_ip=2, proxy_trusted_cidrs="127.0.0.1")
    with limited as server, ExitStack() as stack:
        for number in (1, 1, 2, 2, 3):
            client = stack.enter_context(server.connect())
            client.send(PROXY % number)
            client.ask(ECHO)
        with server.connect() as refused:
            refused.send(PROXY % 2 + request(ECHO))
            assert refused.rest() == b""
        client.sock.close()
        with server.connect() as another:
            another.send(PROXY % 3)
            another.ask(ECHO)


def test_a_host_of_ipv6_is_its_64(tmp_path: Path) -> None:
    limited = serving(tmp_path, max_connections_per_ip=2, proxy_trusted_cidrs="127.0.0.1")
    with limited as server, ExitStack() as stack:
        for source in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "::ffff:10.0.0.1", "::ffff:10.0.0.2"):
            client = stack.enter_context(server.connect())
            client.send(b"PROXY TCP6 %s ::1 4711 9876\r\n" % source.encode())
            client.ask(ECHO)
        with server.connect() as refused:
            refused.send(b"PROXY TCP6 2001:db8::3 ::1 4711 9876\r\n" + request(ECHO))
            assert refused.rest() == b""


def answered(server: Server, host: str) -> bool:
    with server.connect(host) as client:
        client.send(request(ECHO))
        return client.is_answered()


def test_a_peer_that_does_not_read_is_cut_off(bounded: Server) -> None:
    with bounded.connect() as client, bounded.connect() as other:
        client.send(request(PUSHES, count=200, bytes=100_000))
        eventually(lambda: "too much left unread" in bounded.log and bool(other.ask(ECHO)))
        assert len(client.rest()) < 200 * 100_000
        assert bounded.log.count("too much left unread") == 1


def test_files_may_run_out_and_come_back(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.connect() as first:
        resource.prlimit(first.about()["pid"], resource.RLIMIT_NOFILE, (60, 60))
        clients = [server.connect() for _ in range(60)]
        eventually(lambda: "cannot accept connections" in server.log)
        first.ask(ECHO)
        for client in clients[:-1]:
            client.sock.close()
        clients[-1].ask(ECHO)
        clients[-1].sock.close()


def test_a_peer_slow_with_a_long_frame_is_cut_off(bounded: Server) -> None:
    with bounded.connect() as slow, bounded.connect() as other:
        slow.send(request(ECHO, bytes(900_000))[:500_000])

        def cut_off() -> bool:
            assert other.ask(ECHO, b"here").body == b"here"
            try:
                slow.send(b"x")
            except ConnectionError:
                return True
            return False

        eventually(cut_off)
        assert "came with less than 100000 bytes a second" in bounded.log


def test_a_frame_that_waits_is_read_when_one_that_stands_still_is_cut_off(bounded: Server) -> None:
    with bounded.connect() as first, bounded.connect() as second, bounded.connect() as other:
        first.send(request(ECHO, bytes(900_000))[:850_000])
        second.send(request(ECHO, bytes(900_000))[:850_000])
        eventually(lambda: bool(other.ask(ECHO)))
        other.send(request(ECHO, bytes(800_000)))
        assert other.answer().body == bytes(800_000)


def test_of_many_that_leave_long_replies_unread_the_first_is_cut_off(bounded: Server) -> None:
    reason = "its replies were left unread while others needed the memory"
    silent = [bounded.connect() for _ in range(4)]
    with bounded.connect() as other:
        for client in silent:
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            client.send(request(LONG, bytes=10_000_000))
            assert other.ask(ECHO, b"here").body == b"here"
        eventually(lambda: reason in bounded.log)
        assert len(silent[-1].answer().body) == 10_000_000
        with pytest.raises((ConnectionError, EOFError)):
            silent[0].answer()
    for client in silent:
        client.sock.close()
