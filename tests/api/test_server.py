"""What gunicorn's HTTP worker reads and writes on a socket: requests in pieces, and what it refuses."""

import http.client
import json
import os
import select
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mqnamesrv.store import EmbeddedStore
from tests.api.gunicorn import http_workers
from tests.conftest import ENGINES

HEAD_MAX, BODY_MAX, HELD = 4096, 200_000, 300_000
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
PUT = b"PUT /v1/kv/n/k HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
VALUE = b'{"value": "v"}'


@pytest.fixture(scope="module")
def address(store_of: Callable[[str], EmbeddedStore]) -> Iterator[str]:
    store = store_of(next(iter(ENGINES)))
    limits = {"http_head_max_bytes": HEAD_MAX, "http_body_max_bytes": BODY_MAX, "http_held_bytes": HELD}
    limits |= {"http_max_connections": 50, "max_kv_namespace_bytes": 100 * BODY_MAX}
    with http_workers(store.url, workers=1, **limits) as address:
        yield address


class Peer:
    """One connection, and the answers on it."""

    def __init__(self, address: str) -> None:
        host, _, port = address.partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.socket.sendall(piece)

    def answer(self) -> tuple[int, str | None, bytes]:
        """Return status, media type and body of the next answer."""
        status = int(self._file.readline().split()[1])
        headers = http.client.parse_headers(self._file)
        return status, headers["Content-Type"], self._file.read(int(headers["Content-Length"]))

    def problem(self) -> tuple[int, str]:
        """Return status and detail of a problem document, behind which the connection is closed."""
        status, kind, body = self.answer()
        assert kind == "application/problem+json"
        assert self.ended()
        return status, json.loads(body)["detail"]

    def ended(self) -> bool:
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True


@contextmanager
def peers(address: str, count: int) -> Iterator[list[Peer]]:
    opened = [Peer(address) for _ in range(count)]
    try:
        yield opened
    finally:
        for one in opened:
            one.close()


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(PUT + b"Content-Length: 14\r\n\r\n" + VALUE, id="length"),
        pytest.param(
            PUT
            + b"Transfer-Encoding: chunked\r\n\r\n5;x=y\r\n"
            + VALUE[:5]
            + b"\r\n9\r\n"
            + VALUE[5:]
            + b"\r\n0\r\nX-Sum: 1\r\n\r\n",
            id="chunks and a trailer",
        ),
        pytest.param(b"\r\n" + GET, id="behind an empty line"),
    ],
)
def test_a_request_may_come_byte_by_byte(address: str, request_: bytes) -> None:
    with Peer(address) as peer:
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.send(*(request_[at : at + 1] for at in range(len(request_))))
        assert peer.answer()[0] == 200
        peer.send(GET)
        assert peer.answer() == (200, "application/json", b'{"status":"alive"}\n')


def test_requests_may_come_before_the_answers_to_those_before(address: str) -> None:
    with Peer(address) as peer:
        peer.send(GET + PUT + b"Content-Length: 14\r\n\r\n" + VALUE + GET)
        assert [peer.answer()[0] for _ in range(3)] == [200] * 3


def test_the_peer_may_close_its_side_behind_a_request(address: str) -> None:
    with Peer(address) as peer:
        peer.send(GET)
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.answer()[0] == 200


def test_health_waits_for_no_thread_that_waits_for_the_store(
    store_of: Callable[[str], EmbeddedStore],
) -> None:
    store = store_of(next(iter(ENGINES)))
    with (
        http_workers(store.url, workers=1, http_threads=1) as address,
        Peer(address) as asks,
        Peer(address) as looks,
    ):
        looks.send(GET)
        assert looks.answer()[0] == 200
        os.kill(store.child.pid, signal.SIGSTOP)
        try:
            asks.send(GET.replace(b"healthz", b"v1/topics"))
            looks.send(GET)
            assert looks.answer()[0] == 200
            assert not select.select([asks.socket], [], [], 0)[0]
        finally:
            os.kill(store.child.pid, signal.SIGCONT)


def test_a_body_that_waits_to_be_asked_for_is_asked_for_once(address: str) -> None:
    with Peer(address) as peer:
        peer.send(PUT + b"Expect: 100-continue\r\nContent-Length: 14\r\n\r\n")
        asked = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert peer.socket.recv(len(asked), socket.MSG_WAITALL) == asked
        peer.send(VALUE)
        assert peer.socket.recv(15, socket.MSG_WAITALL) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    ("request_", "refusal"),
    [
        pytest.param(
            PUT + b"Content-Length: 200001\r\n\r\n",
            (413, "a body may have 200000 bytes (httpBodyMaxBytes)"),
            id="a long body, announced",
        ),
        pytest.param(
            PUT + b"Transfer-Encoding: chunked\r\n\r\n30d41\r\n",
            (413, "a body may have 200000 bytes (httpBodyMaxBytes)"),
            id="a long chunk, announced",
        ),
        pytest.param(
            PUT + b"Transfer-Encoding: chunked\r\n\r\n" + b"64\r\n%s\r\n" % bytes(100) * 2_000,
            (413, "a body may have 200000 bytes (httpBodyMaxBytes)"),
            id="chunks that are too long together",
        ),
        pytest.param(
            PUT + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 10_001,
            (413, "a body may come in 10000 chunks"),
            id="many chunks",
        ),
        pytest.param(
            PUT + b"Transfer-Encoding: chunked\r\n\r\n0x5\r\n",
            (400, "the size of a chunk is no hexadecimal number"),
            id="no size of a chunk",
        ),
        pytest.param(
            PUT + b"Transfer-Encoding: chunked\r\n\r\n1\r\nxyz0\r\n\r\n",
            (400, r"the body is malformed: Invalid chunk terminator is not '\r\n': b'yz'"),
            id="no end of a chunk",
        ),
        pytest.param(
            PUT + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX\r\n\r\n",
            (400, "the body is malformed: Invalid HTTP Header: 'X'"),
            id="a trailer without a colon",
        ),
        pytest.param(
            GET[:-2] + b"X-Long: " + b"x" * HEAD_MAX,
            (431, "a head may have 4096 bytes (httpHeadMaxBytes)"),
            id="a head without an end",
        ),
        pytest.param(
            GET[:-2] + b"X-Long: " + b"x" * HEAD_MAX + b"\r\n\r\n",
            (431, "a head may have 4096 bytes (httpHeadMaxBytes)"),
            id="a long head",
        ),
        pytest.param(
            b"GET\r\n\r\n", (400, "the head is malformed: Invalid HTTP request line: 'GET'"), id="half a line"
        ),
        pytest.param(
            GET[:-2] + b"<p>\x9b: x\r\n\r\n",
            (400, r"the head is malformed: Invalid HTTP header name: '<p>\x9b'"),
            id="no name of a header",
        ),
        pytest.param(
            GET[:-2] + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            (400, "the head is malformed: Invalid HTTP Header: 'CONTENT-LENGTH'"),
            id="two lengths",
        ),
        pytest.param(
            GET[:-2] + b"Transfer-Encoding: other\r\n\r\n",
            (501, "the head is malformed: Unsupported transfer coding: 'other'"),
            id="another coding",
        ),
        pytest.param(
            GET[:-2] + b"Expect: other\r\n\r\n",
            (417, "the head is malformed: Unable to comply with expectation: 'other'"),
            id="another expectation",
        ),
    ],
)
def test_what_is_too_long_or_malformed_is_refused(
    address: str, request_: bytes, refusal: tuple[int, str]
) -> None:
    with Peer(address) as peer:
        peer.send(request_)
        assert peer.problem() == refusal


def test_each_kind_of_refusal_is_logged(store: EmbeddedStore, capfd: pytest.CaptureFixture[str]) -> None:
    limits = {"http_head_max_bytes": HEAD_MAX, "http_body_max_bytes": BODY_MAX}
    with http_workers(store.url, workers=1, **limits) as address:
        for request_ in (PUT + b"Content-Length: 200001\r\n\r\n", PUT + b"X-Long: " + b"x" * HEAD_MAX):
            with Peer(address) as peer:
                peer.send(request_)
                peer.problem()
    said = capfd.readouterr().err
    assert [status for status in (413, 431) if f"refused a request ({status}): " in said] == [413, 431]


def test_malformed_heads_do_not_fill_the_log(store: EmbeddedStore, capfd: pytest.CaptureFixture[str]) -> None:
    with http_workers(store.url, workers=1) as address:
        for number in range(50):
            with Peer(address) as peer:
                peer.send(b"GET %d" % number + b"x" * 4000 + b"\r\n\r\n")
                assert peer.problem()[0] == 400
    said = capfd.readouterr().err
    assert len(said.splitlines()) < 5
    assert len(said) < 2000


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"1\r\nxyz0\r\n\r\n", id="no end of a chunk"),
        pytest.param(b"1\r\nx\r\n0\r\nX\r\n\r\n", id="a trailer without a colon"),
    ],
)
def test_a_malformed_body_that_nothing_reads_gets_no_answer_of_its_own(address: str, body: bytes) -> None:
    with Peer(address) as peer:
        peer.send(GET[:-2] + b"Transfer-Encoding: chunked\r\n\r\n" + body + GET)
        assert peer.answer()[0] == 200
        assert peer.ended()


def test_too_many_connections_close_those_that_waited_longest(address: str) -> None:
    with peers(address, 60) as opened:
        assert all(one.ended() for one in opened[:10])
        opened[-1].send(GET)
        assert opened[-1].answer()[0] == 200


def test_bodies_under_way_share_a_bound_of_memory(address: str) -> None:
    """The largest is refused; one that is alone may be larger than others leave room for."""
    with peers(address, 3) as opened:
        for one in opened:
            one.send(PUT + b"Content-Length: 200000\r\n\r\n" + b" " * 150_000)
        refused = [one for one in opened if one is not opened[-1]]
        assert any(_was_refused(one) for one in refused)
        with Peer(address) as small:
            small.send(GET)
            assert small.answer()[0] == 200


def _was_refused(one: Peer) -> bool:
    one.socket.settimeout(2)
    try:
        return one.problem() == (503, f"requests under way hold over {HELD} bytes (httpHeldBytes)")
    except TimeoutError:
        return False


def test_an_answer_larger_than_the_bound_is_read_whole(address: str) -> None:
    value = json.dumps({"value": "x" * (BODY_MAX // 2)}).encode()
    for number in range(100):  # the system takes some of them
        with Peer(address) as peer:
            peer.send(
                PUT.replace(b"/n/k", b"/large/%d" % number) + b"Content-Length: %d\r\n\r\n" % len(value),
                value,
            )
            assert peer.answer()[0] == 200
    with Peer(address) as peer:
        peer.send(GET.replace(b"/healthz", b"/v1/kv/large"))
        status, _, body = peer.answer()
        assert (status, len(json.loads(body)["table"])) == (200, 100)
