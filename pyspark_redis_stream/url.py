"""What the URL of a store says: one server, the master that Sentinels know, or a Redis Cluster.

    redis://[user:password@]host[:port][/db][?option=value]      rediss:// is TLS, unix:// a socket file
    redis+sentinel://[user:password@]host[:port],host[:port]/service[/db][?sentinel_username=…&sentinel_password=…]
    redis+cluster://[user:password@]host[:port],host[:port]

The name server reads the same forms (registry/store/url.py). The options after `?` are those of redis-py's
connections, such as `ssl_ca_certs`, `ssl_certfile` and `ssl_keyfile`.
"""

import re
from collections.abc import Collection
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode

import msgspec
from redis.connection import Connection, parse_url
from redis.exceptions import RedisError

Address = tuple[str, int]
FORM = re.compile(r"(rediss?)\+(sentinel|cluster)://(?:([^@/]*@))?([^/?@]+)(?:/([^?]*))?(?:\?(.*))?")
FORMS = (
    "redis://, rediss://, unix://, redis+sentinel://host,host/service/db or redis+cluster://host,host, "
    "the last two also as rediss+"
)
LOGIN = re.compile(r"([a-z+]+://)(?:([^@/:]*)(:[^@/]*)?@)?(.*)", re.DOTALL)
PORT, SENTINEL_PORT = 6379, 26379
SENTINEL_LOGIN = "sentinel_username", "sentinel_password"


class StoreUrl(msgspec.Struct, frozen=True):
    """`settings` are keyword arguments of a redis-py connection, `ssl` among them; `sentinel` those that only
    connections to Sentinels have. A `server` has its address in the settings, the others have `nodes` to ask."""

    kind: Literal["server", "sentinel", "cluster"]
    settings: dict[str, Any]
    nodes: tuple[Address, ...] = ()
    service: str = ""
    sentinel: dict[str, str] = {}


class WrongParameter(ValueError):
    """A parameter behind the `?` of a URL is none, or cannot have this value."""


def parse(url: str) -> StoreUrl:
    """Return what a URL says. Raises ValueError, whose text leaves the URL out: it may hold a password."""
    form = FORM.fullmatch(url)
    try:
        if form is None:
            return StoreUrl("server", _settings(url))
        scheme, kind, login, hosts, path, query = form.groups(default="")
        port = SENTINEL_PORT if kind == "sentinel" else PORT
        nodes = tuple(_address(host, port) for host in hosts.split(","))
        own = SENTINEL_LOGIN if kind == "sentinel" else ()
        settings = _settings(f"{scheme}://{login}host?{query}", own)
        del settings["host"]
        sentinel = {name.removeprefix("sentinel_"): settings.pop(name) for name in own if name in settings}
        service, _, db = path.partition("/")
        if kind == "cluster":
            return StoreUrl("cluster", settings, nodes)
        settings["db"] = int(db or 0)
    except WrongParameter:
        raise
    except ValueError:
        raise ValueError(f"not one of {FORMS}") from None
    if not service:
        raise ValueError("redis+sentinel://host,host/service/db needs the service's name")
    return StoreUrl("sentinel", settings, nodes, unquote(service), sentinel)


def with_login(
    url: str, username: str, password: str, sentinel_username: str = "", sentinel_password: str = ""
) -> str:
    """Return the URL with these logins in place of its own; an empty one leaves what the URL has."""
    form = LOGIN.fullmatch(url)
    if form is None:
        return url
    scheme, name, word, rest = form.groups(default="")
    name, word = quote(username, safe="") or name, f":{quote(password, safe='')}" if password else word
    rest, _, query = rest.partition("?")
    given = (sentinel_username, sentinel_password) if scheme.endswith("+sentinel://") else ("", "")
    login = dict(zip(SENTINEL_LOGIN, given, strict=True))
    query = urlencode(dict(parse_qsl(query)) | {key: value for key, value in login.items() if value})
    return f"{scheme}{name}{word}{'@' if name or word else ''}{rest}{'?' if query else ''}{query}"


def _settings(url: str, own: Collection[str] = ()) -> dict[str, Any]:
    """Return the settings of a URL, of which some are its `own`, not redis-py's. Raises ValueError."""
    settings: dict[str, Any] = parse_url(url)  # type: ignore[no-untyped-call]
    kind = settings.pop("connection_class", Connection)
    try:
        kind(**{name: value for name, value in settings.items() if name not in own})
    except (TypeError, ValueError, RedisError) as error:
        is_secret = "@" in url.partition("?")[2]  # it may be the rest of a password
        text = "in a password ? is written %3F, & %26 and @ %40" if is_secret else str(error)
        raise WrongParameter(f"a parameter behind the ? cannot be used: {text}") from None
    if "path" not in settings:
        settings["ssl"] = kind is not Connection
    return settings


def _address(host: str, port: int) -> Address:
    name, colon, number = host.rpartition(":")
    if colon and not host.endswith("]"):
        return name.strip("[]"), int(number)
    return host.strip("[]"), port
