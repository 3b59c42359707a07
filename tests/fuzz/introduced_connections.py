"""The first bytes of a connection, with or without a PROXY header: whose address counts, and which rights it has."""

import re
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Final

from access.classes import AccessClass
from access.failures import Failures
from access.live import Stored
from registry.options.catalogue import Options
from tests.fuzz.reading import read
from tests.worker.scene import FakePeer
from worker.counters import Counters
from worker.guard import Guard
from worker.transport.host_limit import HostLimit
from worker.transport.proxy_protocol import ProxyError, read_proxy_header
from worker.transport.trusted_proxies import TrustedProxies

TRUSTED: Final = "10.0.0.0/24, 2001:db8::5"
PEERS: Final = ("127.0.0.1", "10.0.0.5", "192.0.2.7", "[2001:db8::5]", "[::1]")
V1: Final = re.compile(rb"PROXY TCP[46] (\S+) \S+ (\d+) \d+\r\n")
V2: Final = b"\r\n\r\n\0\r\nQUIT\n"
RULES: Final = {
    "access_read": "open",
    "access_broker": "cidr:198.51.100.0/24",
    "access_admin": "loopback",
    "access_config": "net",
    "access_networks": "0.0.0.0/0, ::/0",
    "access_audit": "off",
    "access_metrics": "off",
}
READ, BROKER, ADMIN, CONFIG = map(
    int, (AccessClass.READ, AccessClass.BROKER, AccessClass.ADMIN, AccessClass.CONFIG)
)


def introduced_connections(data: bytes) -> None:
    """Only a trusted proxy's header gives a connection another address; no header gives the rights of loopback."""
    if not data:
        return
    host, required = PEERS[data[0] % len(PEERS)], data[0] % 2 == 1
    header = read(lambda: read_proxy_header(data[1:]), ProxyError)
    if header is None:
        return
    peer = FakePeer(1, f"{host}:1")
    proxies = TrustedProxies(_options(required), HostLimit(0, Failures()))
    peer.via = proxies.via(peer.host)
    if header.length:
        proxies.introduce(peer, header.source)
    _guard(required).admit(peer)
    trusted = host in ("10.0.0.5", "[2001:db8::5]")
    named = _named(data[1 : 1 + header.length])
    assert (header.source is None) == (named is None)
    expected = named if trusted and named is not None else f"{host}:1"
    assert _parts(peer.address) == _parts(expected)
    assert peer.rights == _rights(
        peer.host, named=named is not None, header=header.length > 0, trusted=trusted, required=required
    )


def _named(header: bytes) -> str | None:
    """Return the client that a whole header names."""
    match = V1.fullmatch(header)
    if match is not None:
        return f"[{match[1].decode()}]:{int(match[2])}"
    if not header.startswith(V2) or header[12] != 0x21:
        return None
    width = {1: 4, 2: 16}.get(header[13] >> 4)
    if width is None:
        return None
    port = int.from_bytes(header[16 + 2 * width : 18 + 2 * width], "big")
    return f"[{ip_address(header[16 : 16 + width])}]:{port}"


def _parts(address: str) -> tuple[object, int]:
    host, _, port = address.rpartition(":")
    read = ip_address(host.strip("[]"))
    return getattr(read, "ipv4_mapped", None) or read, int(port)


def _rights(host: str, *, named: bool, header: bool, trusted: bool, required: bool) -> int:
    """Return what RULES give: with an unknown client nothing by its address."""
    address = _parts(f"{host}:1")[0]
    if trusted and not named and (header or required):
        return READ
    if header and getattr(address, "is_loopback", False):
        return READ
    near = address in ip_network("198.51.100.0/24")
    return READ | CONFIG | (BROKER if near else 0) | (ADMIN if getattr(address, "is_loopback", False) else 0)


@cache
def _options(required: bool) -> Options:
    return Options(proxy_trusted_cidrs=TRUSTED, proxy_required=required, **RULES)  # type: ignore[arg-type]


@cache
def _guard(required: bool) -> Guard:
    guard = Guard(_options(required), Counters())
    guard.take_stored(Stored())
    return guard
