"""The header a load balancer puts before a connection to name the client (HAProxy PROXY protocol).

Versions 1 (one line of text) and 2 (binary), once at the very start. No socket, no clock: the caller bounds
the wait for the rest of a header."""

from ipaddress import IPv4Address, IPv6Address, ip_address
from struct import Struct
from typing import Final

import msgspec

__all__ = ["NO_HEADER", "ProxyError", "ProxyHeader", "address_text", "read_proxy_header"]

_V1_PREFIX: Final = b"PROXY "
_V1_LONGEST: Final = 107  # two IPv6 addresses and two ports, with CR LF
_V2_SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
_V2_HEAD: Final = Struct(">12sBBH")
_V1_KINDS: Final[dict[str, type[IPv4Address] | type[IPv6Address]]] = {
    "TCP4": IPv4Address,
    "TCP6": IPv6Address,
}
_V2_LOCAL, _V2_PROXY = 0x20, 0x21
_V2_ADDRESSES: Final = {  # family and protocol -> layout of source, destination, source port
    0x00: None,  # unspecified
    0x11: Struct(">4s4sH2x"),
    0x12: Struct(">4s4sH2x"),
    0x21: Struct(">16s16sH2x"),
    0x22: Struct(">16s16sH2x"),
    0x31: Struct(">216x"),  # Unix sockets have no address that could be logged
    0x32: Struct(">216x"),
}


class ProxyError(ValueError):
    """Bytes that begin as a PROXY header and are none; the connection has to be closed."""


class ProxyHeader(msgspec.Struct, frozen=True):
    """`source` is `ip:port` of the client, None where the balancer connects for itself or names none.

    `length` counts the header's bytes."""

    source: str | None
    length: int


NO_HEADER: Final = ProxyHeader(None, 0)


def read_proxy_header(data: bytes) -> ProxyHeader | None:
    """Return the header at the start of a connection: NO_HEADER where there is none, None while more bytes are needed.

    Answers as soon as the bytes rule a header out: a frame begins with another byte, so it never waits.
    TLVs of version 2 are skipped. Raises ProxyError."""
    if data.startswith(_V2_SIGNATURE):
        return _read_v2(data)
    if data.startswith(_V1_PREFIX):
        return _read_v1(data)
    return None if _V2_SIGNATURE.startswith(data) or _V1_PREFIX.startswith(data) else NO_HEADER


def address_text(host: str, port: int) -> str:
    """Return `ip:port`; an IPv6 address in brackets, unless it is an IPv4 one on a socket for both."""
    host = host.removeprefix("::ffff:") if "." in host else host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _text(address: IPv4Address | IPv6Address, port: int) -> str:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address_text(str(mapped or address), port)


def _read_v1(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, _V1_LONGEST)
    if end < 0:
        if len(data) >= _V1_LONGEST:
            raise ProxyError("a PROXY line without an end")
        return None
    try:
        words = data[:end].decode("ascii").split(" ")
    except UnicodeDecodeError:
        raise ProxyError("a PROXY line that is not ASCII") from None
    length = end + 2
    if words[1] == "UNKNOWN":
        return ProxyHeader(None, length)
    family = _V1_KINDS.get(words[1])
    if family is None or len(words) != 6:
        raise ProxyError("a PROXY line that names no TCP connection")
    try:
        if "%" in words[2] + words[3]:  # Python takes any text for the zone of an address
            raise ValueError
        source, _destination = family(words[2]), family(words[3])
    except ValueError:
        raise ProxyError("a PROXY line with a bad address") from None
    port, _ = _port(words[4]), _port(words[5])
    return ProxyHeader(_text(source, port), length)


def _port(text: str) -> int:
    if not (text.isdigit() and len(text) <= 5 and int(text) <= 0xFFFF):
        raise ProxyError("a PROXY line with a bad port")
    return int(text)


def _read_v2(data: bytes) -> ProxyHeader | None:
    if len(data) < _V2_HEAD.size:
        return None
    _, command, kind, rest = _V2_HEAD.unpack_from(data)
    if command not in (_V2_LOCAL, _V2_PROXY) or kind not in _V2_ADDRESSES:
        raise ProxyError(f"a PROXY header with command {command:#x} for {kind:#x}")
    layout = _V2_ADDRESSES[kind]
    if command == _V2_PROXY and layout is not None and rest < layout.size:
        raise ProxyError("a PROXY header that is too short for its addresses")
    length = _V2_HEAD.size + rest
    if len(data) < length:
        return None
    if command == _V2_LOCAL or layout is None:
        return ProxyHeader(None, length)
    fields = layout.unpack_from(data, _V2_HEAD.size)
    return ProxyHeader(_text(ip_address(fields[0]), fields[2]) if fields else None, length)
