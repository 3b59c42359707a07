"""Options of a run: each option's name, type, default and meaning, declared once.

In the environment an option is `MQNS_PIPELINE_<NAME>`; the command line wins over it.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec

from pyspark_redis_stream.url import with_login

PREFIX = "MQNS_PIPELINE_"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
DEFAULT_SLO, OTHERS = 0.999, "*"
MEMORY = re.compile("[1-9][0-9]*[kmgt]", re.IGNORECASE)
"""As Java has it."""
MASTER = re.compile(r"local(\[[0-9*]+(, *[0-9]+)?\])?|(spark|k8s)://.+|yarn")
NAMESPACE = re.compile(r"[A-Za-z0-9._-]+|\*")
"""As the name server has it, or ALL."""
NEAR = 0.7
COUNT = re.compile("[1-9][0-9]{0,15}")
SERVERS = {PREFIX + "EVERY_MILLIS"}
"""An option of the name server's that is called like ours."""
ALL = "*"
"""Among namespaces: whichever there are."""


class OptionError(ValueError):
    """An option that cannot be used; the text names it."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """All times in ms."""

    url: Annotated[
        str, "the Redis of the name server: redis://, rediss://, unix://, redis+sentinel://, redis+cluster://"
    ] = ""
    username: Annotated[str, "in the place of the one in the URL"] = ""
    password: Annotated[str, "in the place of the one in the URL"] = ""
    sentinel_username: Annotated[str, "for Sentinels, if they want any"] = ""
    sentinel_password: Annotated[str, "for Sentinels, if they want any"] = ""
    namespaces: Annotated[tuple[str, ...], "key spaces to read, ns:{<namespace>}:…, separated by commas"] = (
        "default",
    )
    consumer: Annotated[str, "its name in events:consumers, after `pipeline:`"] = "main"
    warehouse: Annotated[str, "where the tables are: a folder, or a URL that delta-rs and Spark know"] = ""
    jars: Annotated[tuple[str, ...], "more for Spark, separated by commas"] = ()
    slo: Annotated[dict[str, float], "availability promised, by cluster: `c1=0.9995,*=0.999`"] = {}
    master: Annotated[
        str, "the Spark that works, where none was submitted to: local[*], spark://host:7077"
    ] = "local[*]"
    memory: Annotated[str, "of Spark's driver, which on this machine does all the work"] = "2g"
    heartbeat: Annotated[int, "heartbeat interval of brokers"] = 30_000
    largest_timeout: Annotated[
        int, "the longest lease a broker has; windows are provisional for twice as long"
    ] = 120_000
    retire_after: Annotated[int, "a broker away for longer is no longer counted as down"] = 7 * DAY_MS
    report: Annotated[str, "folder of report-<namespace>.html; empty for that of the tables, - for none"] = ""
    serve: Annotated[bool, "write the newest figures back to Redis"] = True
    log_format: Annotated[Literal["text", "json"], "of log lines: text, or json with an object a line"] = (
        "text"
    )

    @property
    def spark(self) -> dict[str, str]:
        """What they ask of a Spark session that is ours to start."""
        jars = {"spark.jars": ",".join(self.jars)} if self.jars else {}
        return {"spark.master": self.master, "spark.driver.memory": self.memory, **jars}

    def slo_of(self, cluster: str) -> float:
        """The share of time that its brokers are promised to be up."""
        return self.slo.get(cluster, self.slo.get(OTHERS, DEFAULT_SLO))


def load(environment: Mapping[str, str], given: Mapping[str, object] | None = None) -> Options:
    """The options of a process; `given` wins where it has a value. Raises OptionError."""
    values: dict[str, Any] = {}
    for name, annotation in get_type_hints(Options, include_extras=True).items():
        value = (given or {}).get(name)
        text = environment.get(PREFIX + name.upper()) if value is None else str(value)
        if value is not None and not text:
            raise OptionError(f"{name} is empty: leave it out, or name one")
        if text is None and name == "url":
            text = environment.get("REDIS_URL")
        if text:
            values[name] = _read(name, text, get_args(annotation)[0])
    options = _with_login(Options(**values))
    if not options.warehouse:
        raise OptionError(f"{PREFIX}WAREHOUSE is not set: where the tables are")
    return options


def without_effect(environment: Iterable[str]) -> list[str]:
    """Return a sentence for each variable that looks like an option and is none: most are mistyped."""
    known = {name.upper() for name in get_type_hints(Options)}
    return [
        f"{PREFIX}{name} is no option and has no effect; {_advice(name, known)}"
        for name in sorted(name.removeprefix(PREFIX) for name in environment if name.startswith(PREFIX))
        if name not in known and PREFIX + name not in SERVERS
    ]


def _advice(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name.upper(), known, n=1, cutoff=NEAR)
    return f"did you mean {PREFIX}{near[0]}?" if near else "docs/pipeline.md lists all"


def _with_login(options: Options) -> Options:
    login = options.username, options.password, options.sentinel_username, options.sentinel_password
    return msgspec.structs.replace(options, url=with_login(options.url, *login))


def _read(name: str, text: str, kind: Any) -> object:
    try:
        if name == "slo":
            return _slo(text)
        if name == "memory" and not MEMORY.fullmatch(text):
            raise ValueError("a number and one of k, m, g, t, such as 2g")
        if name == "master" and not MASTER.fullmatch(text):
            raise ValueError("none of local[*], local[4], spark://host:7077, k8s://…, yarn")
        if kind is int and not COUNT.fullmatch(text):
            raise ValueError("a number of ms, above 0")
        if kind is bool and text.lower() not in ("true", "false", "1", "0"):
            raise ValueError("neither true nor false")
        if name == "namespaces" and (odd := [part for part in _parts(text) if not NAMESPACE.fullmatch(part)]):
            raise ValueError(f"{odd[0]!r} is not of letters, digits, dots, dashes and underscores, nor {ALL}")
        if kind == tuple[str, ...]:
            return _parts(text)
        return msgspec.convert(text, kind, strict=False)
    except ValueError as error:
        raise OptionError(f"{PREFIX}{name.upper()}={text}: {error}") from None


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _slo(text: str) -> dict[str, float]:
    objectives = {}
    for part in text.split(","):
        cluster, _, share = part.rpartition("=")
        promised = float(share)
        if not 0 < promised < 1:
            raise ValueError("a share is between 0 and 1")
        objectives[cluster.strip() or OTHERS] = promised
    return objectives
