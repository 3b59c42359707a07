"""HTTP peers that send or read slowly, or not at all: probes are answered meanwhile, and each of them is closed."""

import http.client
import itertools
import json
import re
import resource
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.process_tree import children, command_line, open_files
from testbed.run_queue import waited_s

PEERS = 1000
LIMIT_S = 4.0
"""Of each phase."""
LATE_S = 3.0
"""How much later a busy machine may close 1,000 connections."""
PROBES, ROUNDS = 100, 3
ANSWER_S = 0.1
"""For 99 of 100 probes."""
NEVER_READING = 24
CHUNKED_S = 30.0
"""For requests of very many chunks; each took a thread minutes."""
STORE_FILES = 6
"""What threads that answer may open besides: connections to the store."""
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: "
JSON_HEAD = b"PUT /v1/kv/n/k HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
LIMITS = {
    f"http{phase}TimeoutMillis": str(int(LIMIT_S * 1000)) for phase in ("Head", "Body", "Answer", "Idle")
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServer]:
    options = {**LIMITS, "httpMaxConnections": "1500", "maxKvNamespaceBytes": str(1 << 30)}
    server = NameServer(tmp_path_factory.mktemp("http"), options)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def port(server: NameServer) -> int:
    match = re.search(r"^ready .* http=\S+:(\d+) ", server.said(), re.M)
    assert match
    return int(match[1])


@pytest.fixture(scope="module")
def worker(server: NameServer) -> int:
    """Return the process that answers on the HTTP port."""
    (master,) = (
        pid
        for pid in children(server.pid)
        if "gunicorn_http" in command_line(pid) or "-http" in command_line(pid)
    )
    (worker,) = children(master)
    return worker


@contextmanager
def peers(port: int, first: bytes, count: int = PEERS) -> Iterator[list[socket.socket]]:
    """Yield connections that have sent this, and do not block."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    opened = []
    try:
        for _ in range(count):
            one = socket.socket()
            opened.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(10)
            one.connect(("127.0.0.1", port))
            one.sendall(first)
            one.setblocking(False)
        yield opened
    finally:
        for one in opened:
            one.close()


def probes_are_answered(port: int, worker: int, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Assert that 99 of 100 `/healthz` and `/readyz` come in time, in one of some rounds: on a busy machine its
    other threads and the store wait too, and nothing tells for how long."""

    def clock_s() -> float:
        return time.monotonic() - waited_s(worker, "thread-self")

    for _ in range(ROUNDS):
        took_s = []
        for path in itertools.islice(itertools.cycle(("/healthz", "/readyz")), PROBES):
            meanwhile()
            began = clock_s()
            assert status(port, "GET", path) == 200
            took_s.append(clock_s() - began)
        if sorted(took_s)[PROBES - 2] < ANSWER_S:
            return
    pytest.fail(f"these took long: {[(at, took) for at, took in enumerate(took_s) if took > 0.02]}")


def status(port: int, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        client.request(method, path, body, headers)
        return client.getresponse().status
    finally:
        client.close()


def last_words(opened: list[socket.socket], until: float) -> list[bytes]:
    """Return what each has got when the server closes it; AssertionError if one is open at that time."""
    got = dict.fromkeys(opened, b"")
    left = set(opened)
    poller = select.poll()
    named = {one.fileno(): one for one in opened}
    for one in opened:
        poller.register(one, select.POLLIN)
    while left:
        wait_s = until - time.monotonic()
        assert wait_s > 0, f"{len(left)} of {len(opened)} are open"
        for fd, _ in poller.poll(wait_s * 1000):
            one = named[fd]
            try:
                data = one.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            got[one] += data
            if not data:
                poller.unregister(one)
                left.discard(one)
    return [got[one] for one in opened]


@pytest.mark.parametrize(
    ("first", "status"),
    [
        pytest.param(HEAD, b"408", id="half a head"),
        pytest.param(JSON_HEAD + b"Content-Length: 1000\r\n\r\n{", b"408", id="a byte of a body"),
        pytest.param(
            JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n{", b"408", id="a byte of a chunk"
        ),
        pytest.param(b"", b"", id="nothing"),
    ],
)
def test_a_thousand_that_stand_still(port: int, worker: int, first: bytes, status: bytes) -> None:
    began = time.monotonic()
    with peers(port, first) as opened:
        until = time.monotonic() + LIMIT_S + LATE_S
        probes_are_answered(port, worker)
        words = last_words(opened, max(until, time.monotonic() + LATE_S))
        assert time.monotonic() - began > LIMIT_S
    assert {text[9:12] for text in words} == {status}


def test_a_thousand_that_send_a_byte_a_second(port: int, worker: int) -> None:
    """Each byte of a head comes in time, the whole of it does not."""
    with peers(port, HEAD) as opened:
        until = time.monotonic() + LIMIT_S + LATE_S
        due = time.monotonic()

        def trickle() -> None:
            nonlocal due
            if time.monotonic() >= due:
                due += 1
                for one in opened:
                    with suppress(OSError):  # it was closed
                        one.send(b"x")

        probes_are_answered(port, worker, trickle)
        words = last_words(opened, max(until, time.monotonic() + LATE_S))
    assert {text[9:12] for text in words} <= {b"408", b""}  # what comes behind the end may reset it


def test_those_that_do_not_read(port: int, worker: int) -> None:
    most = int(Path("/proc/sys/net/ipv4/tcp_wmem").read_text().split()[2])
    value = json.dumps({"value": "x" * (256 << 10)}).encode()
    for number in range(most // (256 << 10) + 4):  # more than the system takes of an answer
        assert (
            status(port, "PUT", f"/v1/kv/large/{number}", value, **{"Content-Type": "application/json"})
            == 200
        )
    before = len(open_files(worker))
    with peers(port, b"GET /v1/kv/large HTTP/1.1\r\nHost: localhost\r\n\r\n", NEVER_READING):
        until = time.monotonic() + LIMIT_S + LATE_S
        probes_are_answered(port, worker)
        assert len(open_files(worker)) > before + STORE_FILES
        eventually(
            lambda: len(open_files(worker)) <= before + STORE_FILES, max(LATE_S, until - time.monotonic())
        )


@pytest.mark.parametrize(
    ("chunks", "answer"),
    [
        pytest.param(
            b"1\r\n \r\n" * 9_998 + b"%x\r\n%s\r\n" % (4 << 20, b" " * (4 << 20)), b"400", id="allowed"
        ),
        pytest.param(b"1\r\n \r\n" * 100_000, b"413", id="more"),
    ],
)
def test_chunks_of_one_byte(port: int, worker: int, chunks: bytes, answer: bytes) -> None:
    """More requests than threads."""
    chunked = JSON_HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    with peers(port, b"", 6) as opened:
        for one in opened:
            one.settimeout(CHUNKED_S)
            with suppress(ConnectionError):  # it was refused meanwhile
                one.sendall(chunked)
            one.setblocking(False)
        assert {text[9:12] for text in last_words(opened, time.monotonic() + CHUNKED_S)} <= {answer, b""}
    probes_are_answered(port, worker)
