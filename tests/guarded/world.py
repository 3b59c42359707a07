"""A world as plain data: rules, principals, callers and their requests, and what comes of one. Times are Unix
seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

ALL: Final = None
"""Of names: all that there are."""
Names = tuple[str, ...] | None


class Secret(NamedTuple):
    """A secret or a token, and when it ends."""

    text: str
    ends: float | None = None


class Principal(NamedTuple):
    """`limits` are patterns by kind of name, absent where all are allowed; `keys` and `tokens` are by their ids."""

    roles: tuple[str, ...]
    limits: Mapping[str, tuple[str, ...]] = {}
    limit_reads: bool = False
    keys: Mapping[str, tuple[Secret, ...]] = {}
    certificates: tuple[str, ...] = ()
    tokens: Mapping[str, Secret] = {}


class StoredToken(NamedTuple):
    """A token of the store; `roles` None are those of its principal."""

    principal: str
    token: Secret
    roles: tuple[str, ...] | None = None


class Certificate(NamedTuple):
    """Names in a client certificate, which a handshake has verified, and its end."""

    uris: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    cn: str | None = None
    ends: float = 0.0


class Connection(NamedTuple):
    """A TCP peer. `header` is what a PROXY header says: "" without one, "local" for one that names no client, else the
    client's host."""

    host: str
    port: int
    header: str = ""
    version: int = 1
    tls: bool = False
    certificate: Certificate | None = None
    header_port: int = 40000


class WireRequest(NamedTuple):
    """`topics` and `brokers` are those in the body. `binary` is how the header is written."""

    code: int
    fields: Mapping[str, str] = {}
    body: bytes = b""
    topics: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()
    binary: bool = False
    oneway: bool = False


class HttpRequest(NamedTuple):
    """`needs` is the class of its route, and `names` by kind are what it names."""

    method: str
    path: str
    needs: str
    names: Mapping[str, Names] = {}
    body: object = None
    host: str = "127.0.0.1"
    """Where the TCP peer is."""
    headers: Mapping[str, str] = {}


class Outcome(NamedTuple):
    """`denied`: the rules do not admit it, whether it is answered or not. `actor` is what events and remarks name."""

    result: str
    actor: str = ""
    denied: bool = False


@dataclass
class World:
    """Options and principals; `now` is in Unix seconds."""

    rules: Mapping[str, str]
    observes: bool = False
    networks: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    proxy_required: bool = False
    http_proxies: tuple[str, ...] = ()
    principals: dict[str, Principal] = field(default_factory=dict)
    stored: dict[str, StoredToken] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)
    now: float = 0.0
