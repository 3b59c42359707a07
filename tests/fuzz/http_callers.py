"""Requests over HTTP before the rules: whom their headers make of a caller, and what it is answered.

In front of `api.gate` are what stands there in `api.app`: the names of hosts, and the trusted proxies."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any, Final, NamedTuple

from access.classes import ALL, OPERATORS, AccessClass
from access.live import Take
from access.named import Named
from api.allowed_hosts import AllowedHosts, own_names
from api.caller import proof_in
from api.cross_site import is_own
from api.gate import Asked, Gate
from api.tokens import Tokens
from api.trusted_proxies import FORWARDED, TrustedProxies
from registry.errors import StoreUnavailable
from registry.options.catalogue import Options
from tests.fuzz.known_principals import IDS_OF_FILE, LIMITED, REVOKED, TOKENS, known, stored

OPTIONS: Final = Options(
    access_read="cidr:192.0.2.0/24 token",
    access_broker="off",
    access_admin="loopback token",
    access_config="loopback token",
    access_audit="token",
    access_metrics="net token",
    access_networks="10.0.0.0/8",
    http_allowed_hosts="ns.example, .svc.local",
    http_trusted_proxies="10.0.0.0/24, 127.0.0.2",
    http_user_header="X-User",
)
PEERS: Final = ("192.0.2.7", "127.0.0.1", "10.0.0.5", "127.0.0.2")
BY_PROXIES: Final = frozenset(
    ("X-FORWARDED-FOR", "FORWARDED", "VIA", "X-FORWARDED-HOST", "X-FORWARDED-PROTO", "X-REAL-IP")
)
BEARER: Final = re.compile(r"(?i:bearer) [ \t]*(mqns_\S*)")
DEFAULT_PORT: Final = {"http": ":80", "https": ":443"}


class Answered(NamedTuple):
    """What became of a request: its status, the environ that the gate saw, the principal that it took it for."""

    status: int
    environ: Mapping[str, Any]
    actor: str | None


def http_callers(data: bytes) -> None:
    """No caller has a right without a good token or the right address, nor another status than those of a refusal."""
    if not data:
        return
    at, headers = data[0], _headers(data[1:].decode("latin-1"))
    needed = [*AccessClass][at % 6]
    peer, away, broker = PEERS[at // 6 % 4], at // 24 % 2 == 1, ("b-1", "x-1")[at // 48 % 2]
    answered = _ask(needed, peer, headers, away, broker)
    if answered.status == 400:
        assert not _is_allowed(headers["HOST"])
        return
    assert _is_allowed(headers.get("HOST", ""))
    _check_client(peer, headers, answered.environ)
    assert answered.status == _expected(needed, headers, away, broker, answered), (answered, needed)
    _check_origin(headers.get("ORIGIN", ""), headers.get("HOST", ""))


def _headers(text: str) -> dict[str, str]:
    """Return headers as gunicorn hands them to an application: those of one name joined, none with `_`."""
    headers: dict[str, str] = {}
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        name, value = name.upper(), value.strip(" \t")
        if "_" in name:
            continue
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def _ask(needed: AccessClass, peer: str, headers: Mapping[str, str], away: bool, broker: str) -> Answered:
    seen: list[Answered] = []
    statuses: list[str] = []
    gate = Gate(OPTIONS, lambda operation, result: None, _tokens(away), None)

    def application(environ: Any, start_response: Any) -> list[bytes]:
        try:
            denial = gate.denial_of(environ, Asked(needed, "GET /", lambda: Named(brokers=(broker,))))
            status = 200 if denial is None else denial.status
        except StoreUnavailable:
            status = 503
        proof = proof_in(environ)
        seen.append(Answered(status, environ, None if proof is None else proof.actor))
        return []

    environ = {f"HTTP_{name.replace('-', '_')}": value for name, value in headers.items()}
    environ |= {"REMOTE_ADDR": peer, "REMOTE_PORT": "1", "REQUEST_METHOD": "GET"}
    whole = AllowedHosts(TrustedProxies(application, OPTIONS), OPTIONS)
    whole(environ, lambda status, _: statuses.append(status))  # type: ignore[arg-type]
    if statuses:
        assert statuses[0].startswith("400 ")
        return Answered(400, environ, None)
    (answered,) = seen
    return answered


@cache
def _tokens(away: bool) -> Tokens:
    return Tokens(str(known()), lambda result: None, _no_store if away else lambda take: take(stored()))


def _no_store(take: Take) -> None:
    raise StoreUnavailable("away")


def _expected(
    needed: AccessClass, headers: Mapping[str, str], away: bool, broker: str, answered: Answered
) -> int:
    """Return the status, by the client that was found."""
    near = _admits(needed, answered.environ)
    shown = headers.get("AUTHORIZATION")
    if shown is None:
        return 200 if near else 401
    match = BEARER.fullmatch(shown)
    token = match[1] if match else ""
    classes = _classes(token, away, broker)
    assert (answered.actor is None) == (classes is None), answered
    if classes is not None:
        return 200 if near or needed & classes & ~AccessClass.BROKER else 403
    if away and _may_be_good(token):
        return 503
    return 200 if near and needed not in (AccessClass.BROKER, *OPERATORS) else 401


def _classes(token: str, away: bool, broker: str) -> AccessClass | None:
    """Return the classes of a token for a request of that broker, None of one that is not good. What the store was
    never asked about may be revoked."""
    if away:
        return None
    if token == LIMITED:
        return TOKENS[LIMITED] & (ALL if broker.startswith("b") else ~AccessClass.ADMIN)
    return TOKENS.get(token)


def _may_be_good(token: str) -> bool:
    """Return whether a text has the form of a token, and is that of the access file if it has its id."""
    match = re.fullmatch(r"mqns_([a-z0-9]{8})_([\w-]{43})", token, re.ASCII)
    if match is None or (match[1] in IDS_OF_FILE and token not in (*TOKENS, REVOKED)):
        return False
    return urlsafe_b64encode(urlsafe_b64decode(f"{match[2]}=")) == f"{match[2]}=".encode()


def _admits(needed: AccessClass, environ: Mapping[str, Any]) -> bool:
    """Return what the rules of OPTIONS give the address of a client."""
    client = ip_address(environ["REMOTE_ADDR"])
    client = getattr(client, "ipv4_mapped", None) or client
    forwarded = environ[FORWARDED]
    loopback = client.is_loopback and not forwarded
    match needed:
        case AccessClass.READ:
            return client in ip_network("192.0.2.0/24")
        case AccessClass.ADMIN | AccessClass.CONFIG:
            return loopback
        case AccessClass.METRICS:
            return client in ip_network("10.0.0.0/8")
        case _:
            return False


def _check_client(peer: str, headers: Mapping[str, str], environ: Mapping[str, Any]) -> None:
    """The peer's word counts only if it is a trusted proxy."""
    assert environ[FORWARDED] or BY_PROXIES.isdisjoint(headers)  # it knows others, which take rights, too
    if not _is_trusted(peer):
        assert (environ["REMOTE_ADDR"], "REMOTE_USER" in environ) == (peer, False)
        return
    assert environ["REMOTE_ADDR"] == _client(peer, headers.get("X-FORWARDED-FOR", ""))
    user = environ.get("REMOTE_USER", "x")
    assert user.isprintable()
    assert 0 < len(user) <= 256


def _client(peer: str, forwarded_for: str) -> str:
    """Return the last address that no trusted proxy has, of 16 hops."""
    client = peer
    for part in forwarded_for.split(",")[:-17:-1]:
        hop = _hop(part.strip())
        if hop is None:
            break
        client = hop
        if not _is_trusted(hop):
            break
    return client


def _hop(text: str) -> str | None:
    """Return the address that a hop is, with or without a port."""
    form = re.fullmatch(r"\[([^\[\]]*)\](?::([0-9]{1,5}))?|([^:\[\]]*):([0-9]{1,5})|([^\[\]]*)", text)
    if form is None or "%" in text or int(form[2] or form[4] or 0) > 65535:
        return None
    try:
        address = ip_address(form[1] or form[3] or form[5] or "")
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)


def _is_trusted(host: str) -> bool:
    return ip_address(host) in ip_network("10.0.0.0/24") or host == "127.0.0.2"


def _is_allowed(host: str) -> bool:
    """Return whether a Host is an address, or a name that no stranger can have in DNS."""
    form = re.fullmatch(r"\[(.+)\]|([^:\[\]]*)", re.sub(r":[0-9]*$", "", host))
    if not host or form is None:
        return not host
    try:
        ip_address(form[1] or form[2].removesuffix("."))
    except ValueError:
        name = (form[2] or "").lower().removesuffix(".")
        listed = name in {"localhost", "ns.example", *own_names()} or name.endswith(".svc.local")
        return listed and re.fullmatch(r"[\w.-]+", name, re.ASCII) is not None
    return "%" not in host


def _check_origin(origin: str, host: str) -> None:
    """An origin is the server's own only if it is a scheme with the Host, with or without the scheme's port."""
    own = set()
    for scheme, port in DEFAULT_PORT.items():
        bare = host.lower().removesuffix(port)
        own |= {f"{scheme}://{bare}", f"{scheme}://{bare}{port}"} if host else set()
    scheme, mark, rest = origin.partition("://")
    assert is_own(origin, host) == (f"{scheme}{mark}{rest.lower()}" in own)
