"""An event stream written by hand: entries as the stream has them, and as the landing types them.

Times are seconds after `W0`; what an entry needs and a test does not say is filled in as the name server would."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from mqpipeline.landing.events import NUMBERS, TEXTS
from mqpipeline.schemas import EVENTS
from tests.mqpipeline.rows import frame

W0 = 1_767_225_600_000  # 2026-01-01T00:00:00Z
ACTOR = "wire:10.0.0.1:41210"
TYPED = ("epoch", "effective_ms", "last_seen_ms", "lease_ms", "closed_ms", "since_ms", "topics")
HELD = {*TEXTS, *NUMBERS.values(), "part", "drained", "rows"}
Row = tuple[str, str, str, Sequence[str]]


def at(seconds: float) -> int:
    """Unix ms."""
    return W0 + round(seconds * 1000)


def seconds(row: Sequence[Any], *times: int) -> tuple[Any, ...]:
    """A row whose columns at these places are times: `at` undone, None left alone."""
    return tuple((one - W0) / 1000 if i in times and one is not None else one for i, one in enumerate(row))


class Reported(NamedTuple):
    """What one entry says, before it has its place in a stream: a kind, a cause, its own fields."""

    kind: str
    cause: str
    fields: dict[str, str]


class Entry(NamedTuple):
    """An entry in its place: id `ms-n` and all its fields as text."""

    ms: int
    n: int
    fields: dict[str, str]

    @property
    def id(self) -> str:
        return f"{self.ms}-{self.n}"


def registered(cause: str, broker: str, epoch: int, *, addr: str = "", id: int = 0, **more: Any) -> Reported:
    return Reported(
        "broker_registered", cause, _member(broker, epoch, addr, id) | _texts({"topics": 0} | more)
    )


def updated(broker: str, epoch: int, *, addr: str = "", id: int = 0, **more: Any) -> Reported:
    return Reported("broker_updated", "register", _member(broker, epoch, addr, id) | _texts(more))


def removed(cause: str, broker: str, epoch: int, *, addr: str = "", id: int = 0, **more: Any) -> Reported:
    """`since`, `last_seen`, `closed` and `effective` are seconds."""
    times = {
        f"{name}_ms": at(more.pop(name))
        for name in ("since", "last_seen", "closed", "effective")
        if name in more
    }
    reported = _member(broker, epoch, addr, id) | _texts({"topics": 0, "drained": 0} | times | more)
    return Reported("broker_removed", cause, reported)


def topics(cause: str, *rows: Row, **more: Any) -> Reported:
    """Rows of one broker name it, and its `epoch` where that is given."""
    brokers = {broker for broker, *_ in rows}
    named = {"cluster": "c1", "broker": rows[0][0]} if len(brokers) == 1 else {}
    count = sum(len(names) for *_, names in rows)
    return Reported("topics_changed", cause, _texts(named | {"rows": rows, "count": count} | more))


def drain(
    cause: str, broker: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, **more: Any
) -> Reported:
    given = {"broker": broker, "before": before, "after": after, "topics": 0} | more
    return Reported(
        "drain_changed", cause, _texts({name: one for name, one in given.items() if one is not None})
    )


def checkpoint(scope: str, cause: str = "request", **more: Any) -> Reported:
    return Reported("checkpoint", cause, _texts({"round": "r1", "scope": scope} | more))


def checkpointed(broker: str, epoch: int, held: Mapping[int, tuple[str, float]], **more: Any) -> Reported:
    """The entry of a round that checkpoints a broker: address and `since` of each id."""
    reported = {
        str(id): {"cluster": "c1", "addr": addr or address(broker), "since_ms": at(since)}
        for id, (addr, since) in held.items()
    }
    of: dict[str, Any] = {
        "cluster": "c1",
        "broker": broker,
        "epoch": epoch,
        "acting": "0",
        "members": reported,
    }
    return checkpoint("broker", **{**of, **more})


def address(broker: str) -> str:
    """Where a broker of this name is, unless a test says otherwise."""
    return f"10.0.0.{1 + sum(broker.encode()) % 250}:10911"


def started(cause: str = "empty_store") -> Reported:
    return Reported("stream_started", cause, {})


class Stream:
    """A stream of one incarnation, which begins at `inc` seconds and counts its entries from `seq`."""

    def __init__(self, inc: float = 0, namespace: str = "ns", seq: int = 1) -> None:
        self.namespace, self.inc, self.seq = namespace, at(inc), seq
        self.entries: list[Entry] = []

    def add(self, seconds: float, *group: Reported, actor: str = ACTOR) -> "Stream":
        """Appends the entries that one script writes at this time."""
        ms = at(seconds)
        first = sum(entry.ms == ms for entry in self.entries)
        for i, reported in enumerate(group):
            own = {"v": "1", "kind": reported.kind, "inc": str(self.inc), "seq": str(self.seq + i)}
            if len(group) > 1:
                own["part"] = f"{i + 1}/{len(group)}"
            own |= {"op": f"op-{self.seq}", "cause": reported.cause, "actor": actor} | reported.fields
            self.entries.append(Entry(ms, first + i, own))
        self.seq += len(group)
        return self

    def lose(self, count: int) -> "Stream":
        """A hole: so many entries that are never read."""
        self.seq += count
        return self

    def members(self, seconds: float, round: str = "r1", **of: dict[int, tuple[str, float]]) -> "Stream":
        """A whole checkpoint round: per broker (`<name>_<epoch>`) the address and `since` of each id."""
        self.add(seconds, checkpoint("begin", round=round))
        for name, held in of.items():
            broker, _, epoch = name.rpartition("_")
            self.add(seconds, checkpointed(broker, int(epoch), held, round=round))
        return self.add(seconds, checkpoint("end", round=round))

    def rows(self, batch: int = 1) -> list[dict[str, Any]]:
        """The landing's rows of all entries, read in one batch."""
        return [landed(entry, self.namespace, batch) for entry in self.entries]


def landed(entry: Entry, namespace: str = "ns", batch: int = 1) -> dict[str, Any]:
    """The landing's row of one entry."""
    reported = entry.fields
    part = reported.get("part", "1/1").split("/")
    numbers = {name: int(reported[name]) if name in reported else None for name in TYPED}
    return {
        "namespace": namespace,
        "inc": int(reported["inc"]),
        "seq": int(reported["seq"]),
        "id_ms": entry.ms,
        "id_n": entry.n,
        "v": int(reported["v"]),
        **{name: reported.get(name) for name in ("kind", "cause", "op", "actor", "peer")},
        "part_i": int(part[0]),
        "part_n": int(part[1]),
        **{name: reported.get(name) for name in ("cluster", "broker", "addr")},
        "broker_id": int(reported["id"]) if "id" in reported else None,
        **numbers,
        "drained": {"1": True, "0": False, None: None}[reported.get("drained")],
        "rows": _rows(reported),
        "fields": {
            name: text for name, text in reported.items() if name not in HELD or _static(name, reported)
        },
        "batch": batch,
    }


def _static(name: str, reported: Mapping[str, str]) -> bool:
    return name == "rows" and reported["kind"] == "mappings_changed"


def _rows(reported: Mapping[str, str]) -> list[Row] | None:
    if "rows" not in reported or _static("rows", reported):
        return None
    return [tuple(row) for row in json.loads(reported["rows"])]


def _member(broker: str, epoch: int, addr: str, id: int) -> dict[str, str]:
    own = {"cluster": "c1", "broker": broker, "id": str(id), "addr": addr or address(broker)}
    return own | {"epoch": str(epoch)}


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        for name, value in fields.items()
    }


class Case(NamedTuple):
    """One history, a test's name of it, and what a table says of it."""

    id: str
    rows: Sequence[dict[str, Any]]
    expected: Any


def landing(spark: SparkSession, cases: Iterable[Case]) -> DataFrame:
    """All histories at once, each in a namespace named as the case is: one job of Spark for a whole table of cases."""
    return frame(spark, EVENTS, [row | {"namespace": case.id} for case in cases for row in case.rows])
