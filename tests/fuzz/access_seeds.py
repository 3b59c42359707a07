"""Where fuzzing of access begins: signed requests of each kind, headers, files, rules and certificates as they are."""

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from access.rules import FACTORS
from rocketmq_remoting.acl_signature import signature
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.remoting_command import SerializeType
from tests.access.files import SECRET
from tests.access.test_certificates import DNS, URI, Name, shown
from tests.fuzz.access_files import BETWEEN, GOOD
from tests.fuzz.known_principals import BAD_TOKENS, SECRETS, TEXT, TOKENS

FIELDS: Final[dict[int, dict[str, str]]] = {
    105: {"topic": "orders", "acceptStandardJsonOnly": "true"},
    103: {"brokerName": "b-1", "brokerAddr": "10.0.0.1:10911", "clusterName": "c", "brokerId": "0"},
    104: {"brokerName": "x-1", "clusterName": "c"},
    322: {"brokerName": "b-1", "clusterName": "d"},
    216: {"topic": "orders", "clusterName": "c"},
    217: {"topic": "orders"},
    100: {"namespace": "n\u00e9", "key": "k", "value": "\U0001f600"},
    318: {},
}
ADDED: Final[tuple[dict[str, str], ...]] = (
    {},
    {"__ZONE_NAME": "z", "__ZONE_MODE": "true"},
    {"SecurityToken": "t", "\uff5e": "1", "\U0001f600": "2"},
)
HEADERS: Final = (
    "Host: ns.example:8080\nOrigin: http://ns.example:8080",
    "Host: a.svc.local.\nVia: 1.1 x\nX-User: me",
    "Host: [::1]:1\nX-Forwarded-For: 192.0.2.9:1, 10.0.0.8\nForwarded: for=[::1]",
    "Host: evil.example\nX-Real-IP: 127.0.0.1",
    "Host: localhost.evil.example",
    "Host: localhost:1\nX-Forwarded-For: 198.51.100.1, 192.0.2.9",
    "X-Forwarded-For: [2001:db8::1]:9, ::ffff:10.0.0.9,127.0.0.2\nAuthorization: Basic YTpi",
)
RULES: Final = (
    *FACTORS,
    "loopback signed mtls token",
    "net+signed mtls, token",
    "cidr:10.0.0.0/8+tls,cidr:2001:db8::/32+remoting",
    "cidr:10.0.0.0/255.0.0.0 cidr:192.0.2.7",
)
ODD: Final = (
    b'"a\\nb" = 1',
    b'roles = ["%s"]' % (b"x" * 2_000),
    b'roles = ["reader"]\ncertificates = ["cn:x", "cn:x"]',
)
NETWORKS: Final = (
    b"10.0.0.0/8, fd00::/8\0fd00::1",
    b"0.0.0.0/0,192.0.2.7\0::ffff:192.0.2.7",
    b"::1/128\0[::1]",
    b"fe80::%1/64\0fe80::1",
)
PATTERNS: Final = (b"orders-eu-1\0\0orders-*\0*-1\0orders", b"a.b.svc\0.\0a.*.svc\0*.svc", b"aaaa\0\0a*a*a")
PROXY: Final = (
    b"PROXY TCP4 198.51.100.2 192.0.2.2 1111 9876\r\n",
    b"PROXY TCP6 2001:db8::1 2001:db8::2 1111 9876\r\n",
    b"PROXY TCP6 ::ffff:198.51.100.2 ::1 1111 9876\r\n",
    b"PROXY TCP4 127.0.0.1 192.0.2.2 1111 9876\r\n",
    b"PROXY UNKNOWN\r\n",
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\1" + bytes(range(8)),
    b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24" + bytes(range(36)),
    b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0",
    b"\0\0\0\1",
)
CERTIFICATES: Final[tuple[list[Name], ...]] = (
    [],
    [(DNS, b"b-1.svc"), (URI, b"spiffe://td/x/b")],
    [(URI, b"spiffe://td/a/b")],
    [(DNS, b"B-1.svc"), (DNS, b"x\0.svc")],
)


def _signed() -> Iterator[bytes]:
    """Yield requests of each code in each encoding, signed with one of the keys in one of the forms."""
    keys = [(key, secret) for key, secrets in SECRETS.items() for secret in secrets or ("no secret",)]
    for at, (code, fields) in enumerate(FIELDS.items()):
        key, secret = keys[at % len(keys)]
        signed = {"AccessKey": key, **fields}
        body = b"" if code != 318 else b"orderMessageEnable=true\n"
        whole = {**signed, **ADDED[at % 3], "Signature": signature(signed, body, secret)}
        for kind in SerializeType:
            command = Command(code, at, 0, 399, 0, None, whole, body, kind)
            yield bytes([at * 31]) + encode(command)[4:]


def _certificate(names: list[Name]) -> bytes:
    with TemporaryDirectory() as folder:
        shown(Path(folder), names, ("agent",))
        text = Path(folder, "client.pem").read_text()
    return ssl.PEM_cert_to_DER_cert(text.partition("-----BEGIN PRIVATE")[0])


def _headers() -> Iterator[bytes]:
    shown = [f"Authorization: Bearer {token}" for token in (*TOKENS, *BAD_TOKENS)]
    for at, text in enumerate((*HEADERS, *shown)):
        yield bytes([at]) + text.encode()  # from another machine
        yield bytes([at % 6 + 12]) + text.encode()  # from a trusted proxy


def _files() -> Iterator[bytes]:
    yield GOOD
    yield BETWEEN.join((TEXT.encode(), SECRET.encode()))
    for odd in (
        b'"a\\nb" = 1',
        b'roles = ["%s"]' % (b"x" * 2_000),
        b'roles = ["reader"]\ncertificates = ["cn:x", "cn:x"]',
    ):
        yield b"[principals.p]\n" + odd


ACCESS_SEEDS: Final[Mapping[str, Callable[[], Iterable[bytes]]]] = {
    "signed_requests": _signed,
    "http_callers": _headers,
    "access_files": _files,
    "watched_access_file": _files,
    "access_rules": lambda: (bytes([at]) + text.encode() for at, text in enumerate(RULES)),
    "networks": lambda: NETWORKS,
    "name_patterns": lambda: PATTERNS,
    "certificate_names": lambda: map(_certificate, CERTIFICATES),
    "introduced_connections": lambda: (bytes([at]) + header for header in PROXY for at in range(3)),
}
"""By target: returns its inputs."""
