"""URLs of stores: one server, a master known to Sentinels, or a Redis Cluster.

    redis://[user:password@]host[:port][/db][?option=value]      rediss:// is TLS, unix:// a socket file
    redis+sentinel://[user:password@]host[:port],host[:port]/service[/db][?sentinel_username=…&sentinel_password=…]
    redis+cluster://[user:password@]host[:port],host[:port]

The options after `?` are those of redis-py's connections, such as `ssl_ca_certs`, `ssl_certfile` and `ssl_keyfile`.
"""

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode

import msgspec

Address = tuple[str, int]
FORM = re.compile(r"(rediss?)\+(sentinel|cluster)://(?:([^@/]*@))?([^/?@]+)(?:/([^?]*))?(?:\?(.*))?")
FORMS = (
    "redis://, rediss://, unix://, redis+sentinel://host,host/service/db or redis+cluster://host,host, "
    "the last two also as rediss+"
)
LOGIN = re.compile(r"([a-z+]+://)(?:([^@/:]*)(:[^@/]*)?@)?(.*)", re.DOTALL)
PORT, SENTINEL_PORT = 6379, 26379
SENTINEL_LOGIN = "sentinel_username", "sentinel_password"
PLAIN = frozenset(
    {"username", "password", "db", "client_name", "lib_name", "lib_version", "protocol", "legacy_responses"}
    | {"encoding", "encoding_errors", "decode_responses", "max_connections", "health_check_interval"}
    | {"socket_timeout", "socket_connect_timeout", "socket_read_size", "retry_on_timeout"}
)
"""Settings of redis-py's connections, sync and async, that a text can give."""
TCP = frozenset({"host", "port", "socket_keepalive", "socket_type"})
TLS = frozenset(
    {
        "ssl_keyfile",
        "ssl_certfile",
        "ssl_password",
        "ssl_cert_reqs",
        "ssl_ca_certs",
        "ssl_ca_path",
        "ssl_ca_data",
    }
    | {
        "ssl_check_hostname",
        "ssl_ciphers",
        "ssl_min_version",
        "ssl_include_verify_flags",
        "ssl_exclude_verify_flags",
    }
)
CHOICES = {"protocol": (2, 3), "ssl_cert_reqs": ("none", "optional", "required")}
POSITIVE = frozenset({"max_connections", "socket_timeout", "socket_connect_timeout", "socket_read_size"})
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
BAD_VALUE = re.compile(r"Invalid value for '(\w+)' in connection URL\.?")
"""How redis-py names a parameter whose value it cannot read."""
SECRET = re.compile(r"(//[^@/]*:)[^@/]*(?=@)|(sentinel_password=)[^&]*")


class StoreUrl(msgspec.Struct, frozen=True):
    """`settings` are keyword arguments of a redis-py connection, `ssl` among them; `sentinel` those that only
    connections to Sentinels have. A `server` has its address in the settings, the others have `nodes` to ask."""

    kind: Literal["server", "sentinel", "cluster"]
    settings: dict[str, Any]
    nodes: tuple[Address, ...] = ()
    service: str = ""
    sentinel: dict[str, str] = {}


class WrongParameter(ValueError):
    """A parameter behind the `?` of a URL is none, or cannot have this value; the text names it, without the value."""


def parse(url: str) -> StoreUrl:
    """Return what a URL says. Raises ValueError, without the URL in its text: it may hold a password."""
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
    """Return the URL with these logins in place of its own; an empty one leaves the URL's."""
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


def masked(url: str) -> str:
    """Return the URL with `***` for each password."""
    return SECRET.sub(r"\1\2***", url)


def _settings(url: str, more: Collection[str] = ()) -> dict[str, Any]:
    """Return the settings of a URL, of which there may be `more` than redis-py's. Raises ValueError."""
    from redis.connection import parse_url  # only now: a probe reads options each few seconds, and no URL

    try:
        settings: dict[str, Any] = parse_url(url)  # type: ignore[no-untyped-call]
    except ValueError as error:
        if (parameter := BAD_VALUE.fullmatch(str(error))) is None:
            raise
        raise WrongParameter(_wrong_value(parameter[1])) from None
    over_tls = settings.pop("connection_class", None) is not None and "path" not in settings
    known = {*PLAIN, *more, *(("path",) if "path" in settings else TCP), *(TLS if over_tls else ())}
    for name, value in settings.items():
        if name not in known:
            raise WrongParameter(_unknown(name, known, url))
        if not _can_be(name, value):
            raise WrongParameter(_wrong_value(name))
    if "path" not in settings:
        settings["ssl"] = over_tls
    return settings


def _can_be(name: str, value: Any) -> bool:
    if name in CHOICES:
        return value in CHOICES[name]
    return value > 0 if name in POSITIVE else not isinstance(value, int) or value >= 0


def _wrong_value(name: str) -> str:
    choices = CHOICES.get(name)
    return f"the parameter {name} has a value that it cannot have" + (
        f"; it is {' or '.join(map(str, choices))}" if choices else ""
    )


def _unknown(name: str, known: Collection[str], url: str) -> str:
    """Return what is wrong with a parameter. One that may be the rest of a password is not named."""
    if name in TLS:
        return f"the parameter {name} needs TLS: rediss:// or rediss+"
    if NAME.fullmatch(name) is None or "@" in url.partition("?")[2]:
        return "a parameter behind the ? is unknown; in a password ? is written %3F, & %26 and @ %40"
    near = get_close_matches(name, known, n=1)
    return f"the parameter {name} is unknown" + (f"; did you mean {near[0]}?" if near else "")


def _address(host: str, port: int) -> Address:
    name, colon, number = host.rpartition(":")
    if colon and not host.endswith("]"):
        return name.strip("[]"), int(number)
    return host.strip("[]"), port
