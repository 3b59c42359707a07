"""What the URL of a store says: one server, the master that Sentinels know, or a Redis Cluster.

    redis://[user:password@]host[:port][/db][?option=value]      rediss:// is TLS, unix:// a socket file
    redis+sentinel://[user:password@]host[:port],host[:port]/service[/db][?sentinel_username=…&sentinel_password=…]
    redis+cluster://[user:password@]host[:port],host[:port]

The name server reads the same forms (registry/store/url.py). The options after `?` are those of redis-py's
connections, such as `ssl_ca_certs`, `ssl_certfile` and `ssl_keyfile`.
"""

import re
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode

import msgspec
from redis.connection import parse_url

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


def parse(url: str) -> StoreUrl:
    """Return what a URL says. Raises ValueError, whose text leaves the URL out: it may hold a password."""
    form = FORM.fullmatch(url)
    try:
        if form is None:
            return StoreUrl("server", _settings(url))
        scheme, kind, login, hosts, path, query = form.groups(default="")
        port = SENTINEL_PORT if kind == "sentinel" else PORT
        nodes = tuple(_address(host, port) for host in hosts.split(","))
        settings = _settings(f"{scheme}://{login}host?{query}")
        del settings["host"]
        sentinel = {
            name.removeprefix("sentinel_"): settings.pop(name) for name in SENTINEL_LOGIN if name in settings
        }
        service, _, db = path.partition("/")
        if kind == "cluster":
            return StoreUrl("cluster", settings, nodes)
        settings["db"] = int(db or 0)
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
    login = dict(zip(SENTINEL_LOGIN, (sentinel_username, sentinel_password), strict=True))
    query = urlencode(dict(parse_qsl(query)) | {key: value for key, value in login.items() if value})
    return f"{scheme}{name}{word}{'@' if name or word else ''}{rest}{'?' if query else ''}{query}"


def _settings(url: str) -> dict[str, Any]:
    settings: dict[str, Any] = parse_url(url)  # type: ignore[no-untyped-call]
    if "path" not in settings:
        settings["ssl"] = settings.pop("connection_class", None) is not None
    return settings


def _address(host: str, port: int) -> Address:
    name, colon, number = host.rpartition(":")
    if colon and not host.endswith("]"):
        return name.strip("[]"), int(number)
    return host.strip("[]"), port
