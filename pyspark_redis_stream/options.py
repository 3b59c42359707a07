"""The options of the format `redis_stream`, checked."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from pyspark_redis_stream.ids import BEFORE_ALL, LAST_N, Id, parsed

T = TypeVar("T")
WHOLE = {"page", "partitions", "maxentriesperbatch", "retryseconds", "discoverseconds", "timeoutseconds"}
KNOWN = WHOLE | {
    "url",
    "username",
    "password",
    "tlsca",
    "tlscert",
    "tlskey",
    "tlshostname",
    "pushfilters",
    "streams",
    "pattern",
    "sentinelusername",
    "sentinelpassword",
    "from",
    "after",
    "to",
    "counter",
    "lost",
    "consumer",
    "consumerkey",
}


class Options(msgspec.Struct, frozen=True):
    """docs/pipeline-source.md says what each does. `first` and `last` are read, `after` was read before."""

    url: str
    username: str | None = None
    password: str | None = None
    sentinel_username: str | None = None
    sentinel_password: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_hostname: bool = True
    timeout_s: int = 10
    retry_s: int = 30
    streams: tuple[str, ...] = ()
    pattern: str | None = None
    discover_s: int = 60
    first: Id = BEFORE_ALL
    after: Mapping[str, Id] = {}
    last: Id | None = None
    page: int = 1000
    partitions: int = 1
    max_entries: int | None = None
    counter: str | None = None
    reread_lost: bool = True
    push_filters: bool = False
    consumer: str | None = None
    consumer_key: str = "{stream}:consumers"


def options_of(given: Mapping[str, str]) -> Options:
    """Raises ValueError that names the option which is wrong, never its value where that may be secret."""
    options = {name.lower(): value for name, value in given.items() if name.lower() != "path"}
    if unknown := sorted(set(options) - KNOWN):
        raise ValueError(
            f"redis_stream has no option {', '.join(unknown)}; it has {', '.join(sorted(KNOWN))}"
        )
    if not options.get("url"):
        raise ValueError("redis_stream needs option url, such as redis://host:6379/0")
    streams = tuple(name.strip() for name in options.get("streams", "").split(",") if name.strip())
    if bool(streams) == ("pattern" in options):
        raise ValueError("redis_stream needs either option streams (keys, comma separated) or option pattern")
    lost = options.get("lost", "reread")
    if lost not in ("reread", "ignore"):
        raise ValueError("option lost is reread or ignore")

    def read(name: str, reader: Callable[[str], T], otherwise: T) -> T:
        try:
            return reader(options[name]) if name in options else otherwise
        except ValueError as error:
            raise ValueError(f"option {name}: {error}") from None

    return Options(
        url=options["url"],
        username=options.get("username"),
        password=options.get("password"),
        sentinel_username=options.get("sentinelusername"),
        sentinel_password=options.get("sentinelpassword"),
        tls_ca=options.get("tlsca"),
        tls_cert=options.get("tlscert"),
        tls_key=options.get("tlskey"),
        tls_hostname=read("tlshostname", _flag, True),
        timeout_s=read("timeoutseconds", _positive, 10),
        retry_s=read("retryseconds", _whole, 30),
        streams=streams,
        pattern=options.get("pattern"),
        discover_s=read("discoverseconds", _whole, 60),
        first=read("from", parsed, BEFORE_ALL),
        after=read("after", _positions, {}),
        last=read("to", _last, None),
        page=read("page", _positive, 1000),
        partitions=read("partitions", _positive, 1),
        max_entries=read("maxentriesperbatch", _positive, None),
        counter=options.get("counter"),
        reread_lost=lost == "reread",
        push_filters=read("pushfilters", _flag, False),
        consumer=options.get("consumer"),
        consumer_key=options.get("consumerkey", "{stream}:consumers"),
    )


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"not a whole number: {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if not (number := _whole(text)):
        raise ValueError("must be at least 1")
    return number


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def _positions(text: str) -> Mapping[str, Id]:
    return {stream: parsed(at) for stream, at in msgspec.json.decode(text, type=dict[str, str]).items()}


def _last(text: str) -> Id | None:
    return parsed(text, LAST_N)
