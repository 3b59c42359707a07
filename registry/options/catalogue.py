"""Every option of the name server: the catalogue, and how files, environment and request 318 set them.

The rows come from `registry.options.fields`. An option's environment variable is MQNS_ and its name in
capitals (`listenPort`: MQNS_LISTEN_PORT). Nothing here reads a file, the environment or Redis: callers hand
in mappings (`registry.options.load` reads them for a process).
"""

import re
from collections.abc import Callable, Mapping, Set
from inspect import get_annotations
from typing import Literal, get_args

import msgspec
from msgspec import Struct

from registry.options.addresses import address_at, addresses_of, units_of
from registry.options.fields import (
    AccessOptions,
    Effect,
    NamesrvOptions,
    NettyClientOptions,
    NettyServerOptions,
    OptionInfo,
    Options,
    TlsOptions,
)
from registry.options.host_names import names_of
from registry.options.networks import networks_of
from registry.options.profiles import PROFILES, profile_for
from registry.store import url as store_url
from registry.store.url import with_login
from rocketmq_remoting.typed import converted, decoded

__all__ = [
    "BY_KEY",
    "CATALOGUE",
    "GROWTH_LIMITS",
    "InvalidOption",
    "Option",
    "Options",
    "Source",
    "acceptable",
    "black_list",
    "computed",
    "for_print",
    "from_env",
    "given_settings",
    "in_range",
    "listing",
    "out_of_range",
    "overlay",
    "parse",
    "resolve",
    "shown",
    "text_of",
    "to_env",
]

Group = Literal["namesrv", "netty_server", "netty_client", "tls", "own"]
Value = bool | int | str
Kind = Literal["int", "long", "bool", "str"]
Source = Literal["default", "file", "environment", "command line", "shared", "computed"]
"""Where a value comes from: `shared` is through Redis (318, HTTP), `computed` follows from other options."""


class Option(Struct, frozen=True):
    """One row of the catalogue; `name` is the attribute of `Options`."""

    name: str
    key: str
    type: Kind
    default: Value
    group: Group
    effect: Effect
    why: str

    @property
    def env(self) -> str:
        return f"MQNS_{self.name.upper()}"


class InvalidOption(ValueError):
    """An environment variable or argument that cannot be what it should; the text names it."""


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _kind(base: type, info: OptionInfo) -> Kind:
    if base is bool:
        return "bool"
    if base is int:
        return "long" if info.long else "int"
    return "str"


def _catalogue() -> tuple[Option, ...]:
    groups: dict[type[Struct], Group] = {
        NamesrvOptions: "namesrv",
        NettyServerOptions: "netty_server",
        NettyClientOptions: "netty_client",
        TlsOptions: "tls",
        AccessOptions: "own",
        Options: "own",
    }
    defaults = Options()
    rows = []
    for owner, group in groups.items():
        for name, hint in get_annotations(owner).items():
            base, *annotations = get_args(hint) or (hint,)
            if annotations and isinstance(info := annotations[0], OptionInfo):
                key = info.key or _camel(name)
                rows.append(
                    Option(
                        name, key, _kind(base, info), getattr(defaults, name), group, info.effect, info.why
                    )
                )
    return tuple(rows)


CATALOGUE = _catalogue()
BY_KEY = {option.key: option for option in CATALOGUE}
LISTED_GROUPS = frozenset[Group]({"namesrv", "netty_server"})  # what requests 318 and 319 know
BLACK_PREFIXES = ("access", "proxy", "tls.")
"""Options that a request (318) may never change: they say what is open."""
ALIASES = {"REDIS_URL": "redisUrl", "RQ_REDIS_URL": "rqRedisUrl", "ROCKETMQ_SERIALIZE_TYPE": "serializeType"}
ALWAYS_BLACK = frozenset(
    {
        *("configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"),
        *("httpBindAddress", "ownershipGuard", "discoveryAddress", "discoveryUnits", "advertiseAddress"),
        *(option.key for option in CATALOGUE if option.key.startswith(BLACK_PREFIXES)),
    }
)
GROWTH_LIMITS = (
    *("maxBrokers", "maxMembersOfBroker", "maxClustersOfBroker", "maxNamesOfMember", "maxOwnersOfMember"),
    *("maxTopics", "maxTopicsOfBroker"),
    *("maxNameBytes", "maxAddressBytes", "maxEntryBytes", "maxFilterServersBytes", "maxMappingBytes"),
    *("maxKvNamespaces", "maxKvKeys", "maxKvValueBytes", "maxKvNamespaceBytes"),
    "maxPercentOfHost",
)
"""How far peers can make the tables grow (`registry.growth.limits`)."""
AT_LEAST_ONE = frozenset(
    {
        "remotingWorkers",
        "httpWorkers",
        "httpThreads",
        "httpMaxConnections",
        "httpMaxWatchers",
        "httpHeadMaxBytes",
        "httpIdleTimeoutMillis",
        "httpHeadTimeoutMillis",
        "httpBodyTimeoutMillis",
        "httpAnswerTimeoutMillis",
        "clientRequestThreadPoolQueueCapacity",
        "defaultThreadPoolQueueCapacity",
        "unRegisterBrokerQueueCapacity",
        *GROWTH_LIMITS,
    }
)
AT_MOST = {"maxPercentOfHost": 100}
SECRETS = frozenset(
    {
        "tls.server.keyPassword",
        "tls.client.keyPassword",
        "redisPassword",
        "redisSentinelPassword",
        "rqRedisPassword",
    }
)
NETWORKS = frozenset({"probeNetworks", "proxyTrustedCidrs", "httpTrustedProxies", "accessNetworks"})
HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
ADDRESS = re.compile(r"\S+:[0-9]{1,5}")
CHOICES = {
    "logFormat": ("text", "json"),
    "logLevel": ("debug", "info", "warning", "error"),
    "accessProfile": tuple(PROFILES),
    "accessMode": ("enforce", "observe"),
    "identityConflicts": ("report", "refuse"),
}
PORT_MAX, LONG_MAX = (1 << 16) - 1, (1 << 63) - 1
ADDRESSES: Mapping[str, Callable[[str], object]] = {
    "discoveryAddress": addresses_of,
    "discoveryUnits": units_of,
    "advertiseAddress": lambda text: text and address_at(text, PORT_MAX),
}
"""Options with addresses of name servers, and what reads each."""
PORTS = frozenset({"listenPort", "httpPort", "metricsPort"})
DECIMAL = re.compile(r"[+-]?[0-9]+")
VARIABLES = ALIASES | {option.env: option.key for option in CATALOGUE}  # later ones win
OPTIONS_VARIABLE = "MQNS_OPTIONS"
JAVA_BLANKS = "".join(map(chr, range(33)))


def parse(option: Option, text: str) -> Value | None:
    """Return a text's value as Java reads it (MixAll.properties2Object); None for a number to be ignored."""
    if option.type == "bool":
        return text.lower() == "true"
    if option.type == "str":
        return text.strip(JAVA_BLANKS)
    if not DECIMAL.fullmatch(text):
        return None
    number, bits = int(text), 31 if option.type == "int" else 63
    if not -(1 << bits) <= number < 1 << bits:
        return None
    if option.group == "own" and not (option.key in AT_LEAST_ONE) <= number <= AT_MOST.get(
        option.key, number
    ):
        return None
    return number


def in_range(option: Option, value: Value) -> bool:
    """Return whether a value that is shared can be in force. Request 318 takes any number, as Java's does."""
    if option.type in ("bool", "str"):
        return True
    return int(option.key in AT_LEAST_ONE) <= int(value) <= (PORT_MAX if option.key in PORTS else LONG_MAX)


def text_of(value: Value) -> str:
    """Return a value as Java prints it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parse_strictly(option: Option, text: str, source: str) -> Value:
    """Return a value typed for this start; what Java ignores is an error here. Raises InvalidOption."""
    text = text.strip()
    value = parse(option, text)
    if value is None:
        raise InvalidOption(f"{source}={text}: not a number that {option.key} can be")
    if option.type == "bool" and text.lower() not in ("true", "false"):
        raise InvalidOption(f"{source}={text}: {option.key} is true or false")
    return value


class _Given(Struct, frozen=True):
    """A value that is set, and where."""

    value: Value
    source: Source


def _given(file: Mapping[str, str], env: Mapping[str, str], cli: Mapping[str, str]) -> dict[str, _Given]:
    """Return the values that are set, by attribute: file < environment < command line; empty variables are unset."""
    given: dict[str, _Given] = {}
    for key, text in file.items():
        if (option := BY_KEY.get(key)) and (value := parse(option, text)) is not None:
            given[option.name] = _Given(value, "file")
    for variable, key in VARIABLES.items():
        if text := env.get(variable, ""):
            given[BY_KEY[key].name] = _Given(_parse_strictly(BY_KEY[key], text, variable), "environment")
    for key, text in cli.items():
        given[BY_KEY[key].name] = _Given(_parse_strictly(BY_KEY[key], text, key), "command line")
    return given


def _computed(values: Mapping[str, Value], env: Mapping[str, str]) -> dict[str, Value]:
    """Defaults that depend on the user's environment or on other options."""
    home = env.get("HOME", "")
    data = env.get("XDG_DATA_HOME") or f"{home}/.local/share"
    return {
        "rocketmq_home": env.get("ROCKETMQ_HOME", ""),
        "kv_config_path": f"{home}/namesrv/kvConfig.json",
        "config_store_path": f"{home}/namesrv/namesrv.properties",
        "data_dir": f"{data}/redis-namesrv",
        **_of_profile(values),
    }


def _of_profile(values: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the profile of access and what it gives; an unknown one gives nothing, and is refused later."""
    default = Options()
    hosts = (str(values.get(name, getattr(default, name))) for name in ("bind_address", "http_bind_address"))
    profile = str(values.get("access_profile") or profile_for(*hosts))
    return {"access_profile": profile, **PROFILES.get(profile, {})}


def _with_logins(options: Options) -> Options:
    """The URLs of both stores as they are to be used. Raises InvalidOption for one that cannot be."""
    sentinel = options.redis_sentinel_username, options.redis_sentinel_password
    store = with_login(options.redis_url, options.redis_username, options.redis_password, *sentinel)
    queue = with_login(options.rq_redis_url, options.rq_redis_username, options.rq_redis_password, *sentinel)
    queue = queue or store
    for key, url in (("redisUrl", store), ("rqRedisUrl", queue)):
        try:
            kind = store_url.parse(url).kind if url else "server"
        except ValueError as error:
            raise InvalidOption(f"{key}: {error}") from None
    if kind == "cluster":
        raise InvalidOption("rqRedisUrl: RQ cannot work on a Redis Cluster; name another Redis")
    return msgspec.structs.replace(options, redis_url=store, rq_redis_url=queue)


def _with_networks(options: Options) -> Options:
    """The options, whose lists of networks can be read. Raises InvalidOption for one that cannot."""
    for option in CATALOGUE:
        if option.key in NETWORKS:
            try:
                networks_of(getattr(options, option.name))
            except ValueError as error:
                raise InvalidOption(f"{option.key}: {error}; list networks as 10.0.0.0/8,fd00::/8") from None
    return options


def _with_choices(options: Options) -> Options:
    """The options, of which those with CHOICES are of them, and addresses and names are some. Raises InvalidOption."""
    if options.check_address and not ADDRESS.fullmatch(options.check_address):
        raise InvalidOption(f"checkAddress={options.check_address}: checkAddress is host:port")
    if options.http_user_header and not HEADER.fullmatch(options.http_user_header):
        raise InvalidOption(
            f"httpUserHeader={options.http_user_header}: httpUserHeader is the name of a header, of letters, digits "
            "and dashes"
        )
    try:
        names_of(options.http_allowed_hosts)
    except ValueError as error:
        raise InvalidOption(
            f"httpAllowedHosts: {error}; list names as ns.example.com,.svc.cluster.local"
        ) from None
    for key, choices in CHOICES.items():
        text = getattr(options, BY_KEY[key].name)
        if text not in choices:
            raise InvalidOption(f"{key}={text}: {key} is one of {', '.join(choices)}")
    return options


def _with_addresses(options: Options) -> Options:
    """The options, of which addresses and lists of them can be read. Raises InvalidOption for one that cannot."""
    for key, read in ADDRESSES.items():
        text = getattr(options, BY_KEY[key].name)
        try:
            read(text)
        except ValueError as error:
            raise InvalidOption(f"{key}: {error}") from None
    return options


def resolve(file: Mapping[str, str], env: Mapping[str, str], cli: Mapping[str, str] | None = None) -> Options:
    """Defaults, then the -c file, then the environment, then the command line.

    A number that does not parse is ignored in the file, as Java does, and raises InvalidOption elsewhere.
    ROCKETMQ_HOME is Java's default of rocketmqHome, so the file overrides it.
    """
    given = _given(file, env, cli or {})
    values = {name: entry.value for name, entry in given.items()}
    by_default = _computed(values, env)
    unknown = tuple((key, text) for key, text in file.items() if key not in BY_KEY)
    options = converted(by_default | values | {"listing_also": unknown}, Options)
    options = _with_addresses(_with_choices(_with_networks(_with_logins(options))))
    sources = _sources(options, given, {*by_default, "rq_redis_url"})
    return msgspec.structs.replace(options, sources=tuple(sources.items()))


def _sources(options: Options, given: Mapping[str, _Given], by_default: Set[str]) -> dict[str, Source]:
    """Return where the values come from that are not the catalogue's defaults, by attribute."""
    sources: dict[str, Source] = {
        option.name: "computed"
        for option in CATALOGUE
        if option.name in by_default and getattr(options, option.name) != option.default
    }
    if "rocketmq_home" in sources:
        sources["rocketmq_home"] = "environment"  # ROCKETMQ_HOME
    return sources | {name: entry.source for name, entry in given.items()}


def computed(options: Options, values: Mapping[str, Value]) -> Options:
    """Return the options with values that follow from this start, by attribute."""
    sources = dict(options.sources) | dict.fromkeys(values, "computed")
    return msgspec.structs.replace(options, **values, sources=tuple(sources.items()))


def given_settings(
    file: Mapping[str, str], env: Mapping[str, str], cli: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return Java key -> text of the Live options that this start was given, for the settings shared in Redis."""
    given = _given(file, env, cli or {})
    return {o.key: text_of(given[o.name].value) for o in CATALOGUE if o.effect == "live" and o.name in given}


def black_list(options: Options) -> frozenset[str]:
    """Return the keys that request 318 refuses (DefaultRequestProcessor.initConfigBlackList)."""
    return ALWAYS_BLACK | {key for key in options.config_black_list.split(";") if key}


def acceptable(options: Options, wanted: Mapping[str, str]) -> dict[str, str]:
    """Return what of `wanted` request 318 would set, as Java prints it: known keys whose texts parse.

    Keys that only the -c file has count as known, as they do in Java's Configuration.
    """
    taken: dict[str, str] = {}
    also = dict(options.listing_also)
    for key, text in wanted.items():
        option = BY_KEY.get(key)
        if option is None:
            if key in also:
                taken[key] = text
        elif option.group in LISTED_GROUPS and (value := parse(option, text)) is not None:
            taken[key] = text_of(value)
    return taken


def out_of_range(wanted: Mapping[str, str]) -> dict[str, str]:
    """Return what of `acceptable` values is never in force, though Java and so request 318 take and list it."""
    return {
        key: text
        for key, text in wanted.items()
        if (option := BY_KEY.get(key))
        and not ((value := parse(option, text)) is None or in_range(option, value))
    }


def overlay(options: Options, shared: Mapping[str, str]) -> Options:
    """Return the options with what 318 shared through Redis: Live ones in force, others in the listing only."""
    live: dict[str, Value] = {}
    also = dict(options.listing_also)
    for key, text in acceptable(options, shared).items():
        option = BY_KEY.get(key)
        value = parse(option, text) if option else None
        if option and option.effect == "live" and value is not None and in_range(option, value):
            live[option.name] = value
        else:
            also[key] = text
    return msgspec.structs.replace(options, **live, listing_also=tuple(also.items()))


def listing(options: Options, extra: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Return (key, text) of request 319, sorted: both server configurations, and other keys of the -c file."""
    known = {o.key: text_of(getattr(options, o.name)) for o in CATALOGUE if o.group in LISTED_GROUPS}
    shown = {key: text for key, text in known.items() if text}
    return sorted((shown | dict(options.listing_also) | dict(extra or {})).items())


def for_print(options: Options) -> list[tuple[str, str]]:
    """Return (key, text) of `mqnamesrv -p`: Java's options in its order, TLS and our own; secrets masked."""
    return [(option.key, shown(option, getattr(options, option.name))) for option in CATALOGUE]


def shown(option: Option, value: Value) -> str:
    """Return a value as Java prints it, `***` for a secret and for the password of a store's URL."""
    text = text_of(value)
    if option.key in SECRETS and text:
        return "***"
    return store_url.masked(text) if option.key.endswith("edisUrl") else text


def to_env(options: Options) -> dict[str, str]:
    """Return the one variable by which a supervisor hands resolved options to its children."""
    return {OPTIONS_VARIABLE: msgspec.json.encode(options).decode()}


def from_env(env: Mapping[str, str]) -> Options | None:
    """Return the options that a supervisor handed over; None without one."""
    handed_over = env.get(OPTIONS_VARIABLE)
    return decoded(handed_over, Options) if handed_over else None
