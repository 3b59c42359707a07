"""PROXY headers as bytes, whole and cut anywhere."""

import struct
from ipaddress import ip_address

import pytest

from worker.transport.proxy_protocol import (
    NO_HEADER,
    ProxyError,
    ProxyHeader,
    address_text,
    read_proxy_header,
)

SIGNATURE = bytes.fromhex("0d0a0d0a000d0a515549540a")
FRAME = b"\0\0\0\x87rest"


def v2(kind: int, source: str = "1.2.3.4", command: int = 0x21, more: bytes = b"") -> bytes:
    """A binary header whose destination is the source's own address."""
    address = ip_address(source).packed
    addresses = address + address + struct.pack(">HH", 1111, 9876) + more
    return SIGNATURE + bytes((command, kind)) + struct.pack(">H", len(addresses)) + addresses


TLVS = b"\x02\x00\x03a.b\xe0\x00\x02\xff\xfe"
HEADERS = [
    pytest.param(b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 9876\r\n", "1.2.3.4:1111", id="text, IPv4"),
    pytest.param(b"PROXY TCP6 2001:db8::1 ::1 65535 9876\r\n", "[2001:db8::1]:65535", id="text, IPv6"),
    pytest.param(b"PROXY TCP6 ::ffff:1.2.3.4 ::1 7 9876\r\n", "1.2.3.4:7", id="text, IPv4 in IPv6"),
    pytest.param(v2(0x21, "::ffff:1.2.3.4"), "1.2.3.4:1111", id="binary, IPv4 in IPv6"),
    pytest.param(b"PROXY UNKNOWN\r\n", None, id="text, no address"),
    pytest.param(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None, id="text, addresses that must be ignored"),
    pytest.param(v2(0x11), "1.2.3.4:1111", id="binary, IPv4"),
    pytest.param(v2(0x21, "2001:db8::1"), "[2001:db8::1]:1111", id="binary, IPv6"),
    pytest.param(v2(0x12), "1.2.3.4:1111", id="binary, UDP over IPv4"),
    pytest.param(v2(0x11, more=TLVS), "1.2.3.4:1111", id="binary, with TLVs"),
    pytest.param(v2(0x11, more=b"\0" * 60_000), "1.2.3.4:1111", id="binary, with long TLVs"),
    pytest.param(v2(0x11, command=0x20), None, id="binary, the balancer's own health check"),
    pytest.param(SIGNATURE + b"\x20\x00\x00\x00", None, id="binary, health check without addresses"),
    pytest.param(SIGNATURE + b"\x21\x00\x00\x00", None, id="binary, unspecified"),
    pytest.param(
        SIGNATURE + b"\x21\x31\x00\xd8" + b"/run/s".ljust(216, b"\0"), None, id="binary, Unix socket"
    ),
]


@pytest.mark.parametrize(("header", "source"), HEADERS)
def test_a_header_is_read_and_measured(header: bytes, source: str | None) -> None:
    assert read_proxy_header(header) == ProxyHeader(source, len(header))
    assert read_proxy_header(header + FRAME) == ProxyHeader(source, len(header))


@pytest.mark.parametrize(("header", "source"), HEADERS)
def test_a_header_is_waited_for_to_its_last_byte(header: bytes, source: str | None) -> None:
    assert all(
        read_proxy_header(header[:end]) is None for end in {*range(min(len(header), 300)), len(header) - 1}
    )


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\0", id="a frame's first byte"),
        pytest.param(b"\x16", id="a TLS handshake's first byte"),
        pytest.param(FRAME, id="a frame"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
        pytest.param(b"POST", id="begins as a text header does"),
        pytest.param(b"\r\n\r\n\0\r\nQUIX", id="begins as a binary header does"),
    ],
)
def test_other_bytes_are_ruled_out_at_once(data: bytes) -> None:
    assert read_proxy_header(data) is NO_HEADER


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"PROXY TCP4 1.2.3.4 5.6.7.8 1111\r\n", id="a word is missing"),
        pytest.param(b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 9876 1\r\n", id="a word too many"),
        pytest.param(b"PROXY TCP4 1.2.3.4  5.6.7.8 1111 9876\r\n", id="two blanks"),
        pytest.param(b"PROXY UDP4 1.2.3.4 5.6.7.8 1111 9876\r\n", id="another protocol"),
        pytest.param(b"PROXY TCP4 1.2.3.400 5.6.7.8 1111 9876\r\n", id="no address"),
        pytest.param(b"PROXY TCP4 ::1 ::1 1111 9876\r\n", id="an address of the other family"),
        pytest.param(b"PROXY TCP6 fe80::1%a\n\x1b[1m ::1 1111 9876\r\n", id="a zone"),
        pytest.param(b"PROXY TCP6 ::1 fe80::1%eth0 1111 9876\r\n", id="a zone of the destination"),
        pytest.param(b"PROXY TCP4 1.2.3.4 5.6.7.8 65536 9876\r\n", id="port beyond 65535"),
        pytest.param(b"PROXY TCP4 1.2.3.4 5.6.7.8 -1 9876\r\n", id="port below 0"),
        pytest.param("PROXY TCP4 1.2.3.4 5.6.7.8 ٣ 9876\r\n".encode(), id="digits that are not ASCII"),
        pytest.param(b"PROXY \r\n", id="nothing behind the word"),
        pytest.param(b"PROXY TCP4 " + b"1" * 97, id="a line without an end"),
        pytest.param(SIGNATURE + b"\x11\x11\x00\x0c" + bytes(12), id="version 1 in binary"),
        pytest.param(SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12), id="an unknown command"),
        pytest.param(SIGNATURE + b"\x21\x13\x00\x0c" + bytes(12), id="an unknown family"),
        pytest.param(SIGNATURE + b"\x21\x11\x00\x0b" + bytes(11), id="too short for its addresses"),
        pytest.param(SIGNATURE + b"\x21\x21\x00\x0c", id="too short, as the head alone shows"),
    ],
)
def test_a_bad_header_is_refused(data: bytes) -> None:
    with pytest.raises(ProxyError):
        read_proxy_header(data)


@pytest.mark.parametrize(
    ("host", "text"),
    [
        pytest.param("127.0.0.1", "127.0.0.1:9", id="IPv4"),
        pytest.param("::1", "[::1]:9", id="IPv6"),
        pytest.param("::ffff:127.0.0.1", "127.0.0.1:9", id="IPv4 in IPv6"),
    ],
)
def test_addresses_are_written_with_their_port(host: str, text: str) -> None:
    assert address_text(host, 9) == text
