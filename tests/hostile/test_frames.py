"""Frames that are cut off, too long or malformed: a reply if possible, else a close without a byte."""

import ssl
from contextlib import suppress
from struct import pack

import pytest

from rocketmq_remoting.command import Command, encode
from testbed.eventually import eventually
from tests.hostile.attacker import Attacker
from tests.hostile.frames import ASKED, LONGEST, TLS_HELLO_START, frame_of, json_frame
from tests.hostile.watch import Watch

HEADER = b'{"code":105,"opaque":7,"version":373}'


@pytest.mark.parametrize("asked", ASKED, ids=["JSON", "binary"])
def test_a_frame_cut_at_every_byte_is_answered_when_the_rest_comes(watch: Watch, asked: Command) -> None:
    frame = encode(asked)
    connections = [Attacker(watch.server.port) for _ in frame]
    for cut, connection in enumerate(connections):
        connection.send(frame[:cut])
    for cut, connection in enumerate(connections):
        connection.send(frame[cut:])
    for connection in connections:
        reply = connection.receive()
        assert (reply.code, reply.opaque, reply.flag) == (17, 7, 1)
        connection.close()


@pytest.mark.parametrize("asked", ASKED, ids=["JSON", "binary"])
def test_a_frame_cut_at_every_byte_for_good_is_closed(watch: Watch, asked: Command) -> None:
    frame = encode(asked)
    connections = [Attacker(watch.server.port) for _ in frame]
    for cut, connection in enumerate(connections):
        connection.send(frame[:cut])
        connection.end()
    for connection in connections:
        assert connection.closed()
        connection.close()


LENGTHS = (-(2**31), -(2**24), -1, 0, 1, 2, 3, LONGEST - 3, LONGEST, 2**30, 2**31 - 1)


@pytest.mark.parametrize(
    "start",
    [
        *(pytest.param(pack(">i", length), id=f"length {length}") for length in LENGTHS),
        *(
            pytest.param(pack(">iI", 100, kind << 24 | 20), id=f"type {kind}")
            for kind in (2, 3, 16, 127, 128, 255)
        ),
        pytest.param(pack(">iI", 100, 0), id="no JSON header"),
        pytest.param(pack(">iI", 100, 1 << 24), id="no binary header"),
        pytest.param(pack(">iI", 100, 97), id="a header longer than its frame"),
        pytest.param(pack(">iI", 100, 0xFFFFFF), id="a header of 16 MiB in a short frame"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="SSH"),
        pytest.param(b"\x00" * 4096, id="zeros"),
        pytest.param(b"\xff" * 4096, id="ones"),
        pytest.param(b"PROXY TCP4 1.2.3.4\r\n", id="half a PROXY line"),
        pytest.param(b"PROXY " + b"x" * 200, id="a PROXY line without an end"),
        pytest.param(b"\r\n\r\n\0\r\nQUIT\n\x21\xff\0\x00", id="a PROXY header of no family"),
        pytest.param(json_frame(HEADER[:-1]), id="JSON cut off"),
        pytest.param(json_frame(b"[" * 10_000), id="brackets 10,000 deep"),
        pytest.param(json_frame(b'{"a":' * 10_000 + b"1" + b"}" * 10_000), id="objects 10,000 deep"),
        pytest.param(
            json_frame(HEADER[:-1] + b',"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}"),
            id="a member 10,000 deep",
        ),
        pytest.param(json_frame(b"{" + b"1:1," * 2_000_000), id="a header of 8 MB of bare keys"),
        pytest.param(json_frame(HEADER.replace(b"105", b"9223372036854775808")), id="code over int64"),
        pytest.param(json_frame(HEADER.replace(b"7", b"2147483648", 1)), id="opaque over int32"),
        pytest.param(json_frame(HEADER.replace(b"373", b"1" * 5000)), id="a version of 5,000 digits"),
        pytest.param(json_frame(HEADER.replace(b"373", b"1e999")), id="an infinite version"),
        pytest.param(json_frame(b'{"code":105,"extFields":{"topic":"\\ud800"}}'), id="half a surrogate pair"),
        pytest.param(json_frame(b'{"code":105,"extFields":{"topic":"\xff"}}'), id="no UTF-8"),
    ],
)
def test_what_is_no_frame_is_closed_without_a_byte(over: Attacker, start: bytes) -> None:
    with suppress(ConnectionError):  # it may be closed before all is sent
        over.send(start)
    assert over.closed()


@pytest.mark.parametrize("size", [LONGEST - 1, LONGEST])
def test_the_longest_frames_are_answered(over: Attacker, size: int) -> None:
    over.send(frame_of(size))
    assert over.receive().code == 3


def test_one_byte_more_is_closed_before_it_comes(over: Attacker) -> None:
    over.send(frame_of(LONGEST + 1)[:8])
    assert over.closed()


def test_one_log_line_counts_many_connections(watch: Watch) -> None:
    """Another line comes when the interval of the last one is over, with the number of suppressed lines."""

    def counted() -> bool:
        for _ in range(20):
            connection = Attacker(watch.server.port)
            connection.send(pack(">i", -1))
            assert connection.closed()
            connection.close()
        return any("more like it" in line for line in watch.lines())

    eventually(counted, 15.0)


def hello() -> bytes:
    """Return the first bytes of a TLS client."""
    out = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


def test_half_a_handshake_is_closed_when_its_peer_goes(watch: Watch) -> None:
    said = hello()
    connections = [Attacker(watch.server.port) for _ in range(0, len(said), 3)]
    for cut, connection in enumerate(connections):
        connection.send(said[: 1 + 3 * cut])
    for connection in connections:
        connection.end()
    for connection in connections:
        connection.rest()  # perhaps an alert
        connection.close()


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(TLS_HELLO_START + b"\xff" * 300, id="rubbish as hello"),
        pytest.param(b"\x16\x03\x01\x40\x00" + b"\x00" * 16384, id="a record of zeros"),
        pytest.param(b"\x16" + b"\xff" * 5000, id="no record"),
        pytest.param(b"\x16\x03\x01\x00\x00" * 3000, id="empty records"),
    ],
)
def test_a_broken_handshake_is_closed(over: Attacker, broken: bytes) -> None:
    """An alert may come first."""
    with suppress(ConnectionError):
        over.send(broken)
    over.rest()
