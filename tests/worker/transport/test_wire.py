"""The worker under gunicorn, over real sockets."""

import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from testbed.eventually import eventually
from tests.worker.transport.client import ONEWAY, RESPONSE, Client, Server, request, serving
from tests.worker.transport.echo_worker import ECHO, FAULT, HANG_UP, LATE
from worker.transport.proxy_protocol import address_text

PROXY_V1 = b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 9876\r\n"
PROXY_V2 = bytes.fromhex("0d0a0d0a000d0a515549540a2111000c010203040506070804572694")
SEGMENTS_IN = 152
"""Offset of tcpi_data_segs_in in Linux's struct tcp_info."""


def segments_received(client: Client) -> int:
    info = client.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    count: int = struct.unpack_from("I", info, SEGMENTS_IN)[0]
    return count


@pytest.mark.parametrize(
    ("trusted", "host"),
    [
        pytest.param("", "127.0.0.1", id="of any peer"),
        pytest.param("10.0.0.0/8", "127.0.0.1", id="of one that is not listed"),
        pytest.param("10.0.0.0/8,127.0.0.1", "1.2.3.4", id="of a listed balancer"),
    ],
)
def test_a_proxy_header_gives_the_address_of_a_peer_if_its_sender_is_trusted(
    tmp_path: Path, trusted: str, host: str
) -> None:
    with serving(tmp_path, proxy_trusted_cidrs=trusted) as server, server.connect() as client:
        client.send(PROXY_V1)
        about = client.about()
        assert about["host"] == host
        assert (about["address"] == "1.2.3.4:1111") == (host == "1.2.3.4")


def test_a_request_sent_byte_by_byte_is_answered(server: Server) -> None:
    with server.connect() as client:
        for byte in request(ECHO, b"cut"):
            client.send(bytes([byte]))
        assert client.answer().body == b"cut"


@pytest.mark.parametrize("size", [pytest.param(0, id="nothing"), pytest.param(16_000_000, id="16 MB")])
def test_bodies_of_any_size_come_back(server: Server, size: int) -> None:
    body = b"b" * size
    with server.connect() as client:
        assert client.ask(ECHO, body).body == body


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_a_long_reply_comes_whole_and_unmixed_however_slowly_it_is_read(server: Server, tls: bool) -> None:
    body = b"".join(number.to_bytes(4, "big") for number in range(2_000_000))
    with server.tls() if tls else server.connect() as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.send(request(LATE, body, ms=1) + request(ECHO, b"short"))
        with server.connect() as other:
            other.ask(ECHO)
        answers = {
            client.answer().body,
            client.answer().body,
        }  # which is first depends on how the requests came
        assert answers == {b"short", body}
        client.sock.shutdown(socket.SHUT_WR)


def test_answers_to_one_read_come_together(server: Server) -> None:
    """In one segment, unless the turn is over before all are answered."""
    with server.connect() as client:
        client.send(b"".join(request(ECHO, b"%d" % n) for n in range(50)))
        assert [client.answer().body for _ in range(50)] == [b"%d" % n for n in range(50)]
        assert segments_received(client) <= 5


def test_late_answers_of_one_moment_come_in_one_segment(server: Server) -> None:
    with server.connect() as client:
        client.send(b"".join(request(LATE, ms=50) for _ in range(100)))
        for _ in range(100):
            client.answer()
        assert segments_received(client) <= 5


def test_responses_and_oneways_get_no_answer(server: Server) -> None:
    with server.connect() as client:
        client.send(request(ECHO, b"response", flag=RESPONSE) + request(ECHO, b"oneway", flag=ONEWAY))
        assert client.ask(ECHO, b"request").body == b"request"


@pytest.mark.parametrize(
    ("header", "address"),
    [
        pytest.param(PROXY_V1, "1.2.3.4:1111", id="text"),
        pytest.param(PROXY_V2, "1.2.3.4:1111", id="binary"),
        pytest.param(b"PROXY UNKNOWN\r\n", None, id="no address"),
    ],
)
def test_the_peer_is_the_one_the_balancer_names(server: Server, header: bytes, address: str | None) -> None:
    with server.connect() as client:
        own = address_text(*client.sock.getsockname())
        client.send(header)
        assert client.about()["address"] == (address or own)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
        pytest.param(b"PROXY rubbish\r\n", id="bad PROXY header"),
        pytest.param(b"\xff\xff\xff\xff", id="bad length"),
        pytest.param(PROXY_V1 + PROXY_V1, id="two PROXY headers"),
        pytest.param(request(FAULT), id="a fault of ours"),
    ],
)
def test_what_cannot_be_read_ends_one_connection_only(server: Server, data: bytes) -> None:
    with server.connect() as other, server.connect() as client:
        client.send(data)
        assert client.rest() == b""
        assert other.ask(ECHO, b"still here").body == b"still here"


def test_a_connection_that_the_service_closes_gets_its_answer_first(server: Server) -> None:
    with server.connect() as client:
        client.send(request(HANG_UP) + request(ECHO))
        client.answer()
        assert client.rest() == b""


def test_a_client_that_shuts_its_side_still_gets_its_answer(server: Server) -> None:
    with server.connect() as client:
        client.send(request(LATE, b"late", ms=50))
        client.sock.shutdown(socket.SHUT_WR)
        assert client.answer().body == b"late"
        assert client.rest() == b""


def test_a_pipeline_that_is_not_read_waits_and_comes_whole(server: Server) -> None:
    data = request(ECHO, bytes(100_000)) * 300  # more than the buffers of four sockets hold
    with server.connect() as client, server.connect() as other:
        client.sock.settimeout(0.2)
        sent = send_until_stuck(client.sock, data)
        assert sent < len(data)
        assert other.ask(ECHO, b"meanwhile").body == b"meanwhile"
        client.sock.settimeout(10)
        with ThreadPoolExecutor(1) as pool:
            rest = pool.submit(client.sock.sendall, data[sent:])
            assert all(client.answer().body == bytes(100_000) for _ in range(300))
            rest.result()


def send_until_stuck(sock: socket.socket, data: bytes) -> int:
    """How many bytes the other end's system and ours took."""
    sent = 0
    with suppress(TimeoutError):
        while sent < len(data):
            sent += sock.send(data[sent : sent + 50_000])
    return sent


def test_opening_and_closing_leaves_nothing(server: Server) -> None:
    with server.connect() as observer:
        before = observer.about()
        for _ in range(20):
            clients = [server.connect() for _ in range(100)]
            for number, client in enumerate(clients):
                if number % 3:
                    client.send(request(ECHO) if number % 3 == 1 else b"\0\0\0\x10half")
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", number % 2, 0))
            for client in clients:
                client.sock.close()
        eventually(lambda: bool(observer.about()["connections"] <= before["connections"]))
        assert observer.about()["fds"] <= before["fds"]
