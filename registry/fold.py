"""The tables that a stretch of the event stream leads to: what history is read by, and what proves the entries.

Every value is frozen; `fold` verifies as it goes that no entry is missing and that each one starts from what the
entries before it led to.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from registry.keys import member_key

K = TypeVar("K")
V = TypeVar("V")
Row: TypeAlias = tuple[str, str, str, tuple[str, ...]]
MappingRow: TypeAlias = tuple[str, str, msgspec.Raw, msgspec.Raw]
NO_INFO = b"null"


class FoldError(ValueError):
    """An entry that does not follow from those before it; the text begins with its id."""


class Event(msgspec.Struct, frozen=True):
    """One entry of the stream: `fields` are all of its fields, as text."""

    id: str
    fields: Mapping[str, str]

    @property
    def kind(self) -> str:
        return self.fields["kind"]

    @property
    def cause(self) -> str:
        return self.fields["cause"]

    def text(self, name: str) -> str:
        """A field, "" when it is absent."""
        return self.fields.get(name, "")

    def number(self, name: str) -> int:
        return int(self.fields[name])

    def json(self, name: str, kind: Any) -> Any:
        """A field of JSON, read as `kind`."""
        return msgspec.json.decode(self.fields[name].encode(errors="surrogatepass"), type=kind)


class FoldedMember(msgspec.Struct, frozen=True):
    """What a member registered last; `version` is `stateVersion:timestamp:counter`, "" while it is incomplete."""

    ha: str
    timeout_ms: int
    filters: tuple[str, ...]
    version: str


class FoldedBroker(msgspec.Struct, frozen=True):
    """A broker name. `addrs` maps an id to its member `<cluster>:<addr>`; without any the broker is gone, and its
    topics count again only if a member comes back under the same epoch.

    `topics` are `readQ,writeQ,perm,sysFlag` by topic, `mappings` TopicQueueMappingInfo as JSON by topic."""

    epoch: int
    cluster: str
    clusters: frozenset[str]
    acting: bool = False
    zone: str = ""
    addrs: dict[int, str] = {}
    topics: dict[str, str] = {}
    mappings: dict[str, bytes] = {}


class Tables(msgspec.Struct, frozen=True):
    """All that the entries up to `seq` of incarnation `inc` tell. `members` by `<cluster>:<addr>`.

    `hold` and `drains` are JSON as stored, settings are by option name with secrets as `***`; KV values too large
    for an entry are None."""

    inc: str = ""
    seq: int = 0
    brokers: dict[str, FoldedBroker] = {}
    members: dict[str, FoldedMember] = {}
    kv: dict[str, dict[str, str | None]] = {}
    settings: dict[str, str] = {}
    drains: dict[str, str] = {}
    hold: str = ""

    def living(self) -> dict[str, FoldedBroker]:
        """The brokers that have a member."""
        return {name: broker for name, broker in self.brokers.items() if broker.addrs}


def fold(tables: Tables, events: Iterable[Event]) -> Tables:
    """What `tables` become by these entries, in order. Raises FoldError."""
    for event in events:
        tables = _next(tables, event)
    return tables


def answered(tables: Tables, later: Iterable[Event], at_ms: int) -> Tables:
    """What readers were answered at `at_ms` (Redis clock), where `tables` is the fold of all entries up to then.

    A lapse is recorded later than it happened: members are left out whose removal is among the entries `later`,
    but was effective by then. Members and topics of a broker without any count as gone (`Tables.living`)."""
    brokers, heard = dict(tables.brokers), set[tuple[str, int]]()
    for event in later:
        if event.kind not in ("broker_registered", "broker_removed"):
            continue
        place = (event.text("broker"), event.number("id"))
        broker = brokers.get(place[0])
        over = "effective_ms" in event.fields and event.number("effective_ms") <= at_ms
        if over and broker is not None and place not in heard:
            brokers[place[0]] = replace(broker, addrs=_without(broker.addrs, place[1]))
        heard.add(place)
    return replace(tables, brokers=brokers)


def _next(tables: Tables, event: Event) -> Tables:
    step = _STEPS.get(event.kind)
    if step is None:
        raise FoldError(f"{event.id}: unknown kind {event.kind!r}")
    if event.kind != "stream_started" and (event.text("inc"), event.number("seq")) != (
        tables.inc,
        tables.seq + 1,
    ):
        raise FoldError(
            f"{event.id}: {event.text('inc')}/{event.text('seq')} follows {tables.inc}/{tables.seq}"
        )
    after = step(tables, event)
    return replace(after, inc=event.text("inc"), seq=event.number("seq"))


def _started(tables: Tables, event: Event) -> Tables:
    """A new incarnation: of an empty store, or of tables that a checkpoint restates."""
    _same(event, "seq", event.number("seq"), 1)
    return Tables() if event.cause == "empty_store" else tables


def _registered(tables: Tables, event: Event) -> Tables:
    name, key, number = event.text("broker"), _member(event), event.number("id")
    epoch, own = event.number("epoch"), event.text("cluster")
    group = event.text("group_cluster") or own
    broker = tables.brokers.get(name)
    if broker is None or broker.epoch != epoch:
        _same(event, "members of an older epoch", broker.addrs if broker else {}, {})
        broker = FoldedBroker(epoch, group, frozenset())
    _same(event, "group_cluster", group, broker.cluster)
    _same(event, "holder of the id", broker.addrs.get(number), None)
    broker = replace(
        broker,
        clusters=broker.clusters | {own},
        acting=event.text("acting") == "1",
        zone=event.text("zone"),
        addrs={**broker.addrs, number: key},
    )
    _same_addrs(event, broker)
    member = FoldedMember(
        event.text("ha"), event.number("timeout_ms"), _filters(event, "filters"), event.text("dv")
    )
    return replace(tables, brokers={**tables.brokers, name: broker}, members={**tables.members, key: member})


def _updated(tables: Tables, event: Event) -> Tables:
    name, key = event.text("broker"), _member(event)
    broker, member = _living(tables, event)
    _same(event, "member", broker.addrs.get(event.number("id")), key)
    given = event.fields
    if "zone" in given:
        _same(event, "zone_before", event.text("zone_before"), broker.zone)
        broker = replace(broker, zone=given["zone"])
    if "acting" in given:
        _same(event, "acting_before", event.text("acting_before") == "1", broker.acting)
        broker = replace(broker, acting=given["acting"] == "1")
    if "ha" in given:
        _same(event, "ha_before", event.text("ha_before"), member.ha)
        member = replace(member, ha=given["ha"])
    if "timeout_ms" in given:
        _same(event, "timeout_ms_before", event.number("timeout_ms_before"), member.timeout_ms)
        member = replace(member, timeout_ms=event.number("timeout_ms"))
    if "filters" in given:
        _same(event, "filters_before", _filters(event, "filters_before"), member.filters)
        member = replace(member, filters=_filters(event, "filters"))
    if "dv" in given:
        _same(event, "dv_before", event.text("dv_before"), member.version)
        member = replace(member, version=given["dv"])
    return replace(tables, brokers={**tables.brokers, name: broker}, members={**tables.members, key: member})


def _removed(tables: Tables, event: Event) -> Tables:
    name, key, number = event.text("broker"), _member(event), event.number("id")
    broker, member = _living(tables, event)
    _same(event, "member", broker.addrs.get(number), key)
    _same(event, "dv", event.text("dv"), member.version)
    broker = replace(broker, addrs=_without(broker.addrs, number))
    _same_addrs(event, broker)
    brokers = {**tables.brokers, name: broker}
    listed = any(key in one.addrs.values() for one in brokers.values())
    return replace(
        tables, brokers=brokers, members=tables.members if listed else _without(tables.members, key)
    )


def _topics(tables: Tables, event: Event) -> Tables:
    brokers, count = dict(tables.brokers), 0
    for name, before, after, topics in event.json("rows", list[Row]):
        broker = _broker(tables, event, name)
        changed = dict(brokers[name].topics)
        for topic in topics:
            _same(event, f"{name} {topic}", before, changed.pop(topic, ""))
            if after:
                changed[topic] = after
        brokers[name] = replace(brokers[name], topics=changed)
        count += len(topics)
        if "epoch" in event.fields:
            _same(event, "epoch", event.number("epoch"), broker.epoch)
    _same(event, "count", event.number("count"), count)
    return replace(tables, brokers=brokers)


def _mappings(tables: Tables, event: Event) -> Tables:
    brokers = dict(tables.brokers)
    for name, topic, before, after in event.json("rows", list[MappingRow]):
        _broker(tables, event, name)
        changed = dict(brokers[name].mappings)
        _same(event, f"{name} {topic}", bytes(before), changed.pop(topic, NO_INFO))
        if bytes(after) != NO_INFO:
            changed[topic] = bytes(after)
        brokers[name] = replace(brokers[name], mappings=changed)
    return replace(tables, brokers=brokers)


def _kv(tables: Tables, event: Event) -> Tables:
    namespace, key = event.text("kv_ns"), event.text("key")
    table = tables.kv.get(namespace, {})
    before = table.get(key)
    if "before_bytes" not in event.fields and before is not None:
        _same(event, "before", event.fields.get("before"), before)
    kept = _without(table, key)
    if event.cause != "delete":
        kept[key] = event.fields.get("after")
    return replace(tables, kv={**tables.kv, namespace: kept})


def _settings(tables: Tables, event: Event) -> Tables:
    changes = event.json("changes", dict[str, tuple[str | None, str]])
    for option, (before, _) in changes.items():
        _same(event, option, before, tables.settings.get(option))
    return replace(
        tables, settings=tables.settings | {option: after for option, (_, after) in changes.items()}
    )


def _hold(tables: Tables, event: Event) -> Tables:
    _same(event, "before", event.text("before"), tables.hold)
    return replace(tables, hold=event.text("after"))


def _drain(tables: Tables, event: Event) -> Tables:
    name, after = event.text("broker"), event.text("after")
    _same(event, "before", event.text("before"), tables.drains.get(name, ""))
    kept = _without(tables.drains, name)
    return replace(tables, drains=kept | {name: after} if after else kept)


def _nothing(tables: Tables, _: Event) -> Tables:
    """A judgement, or a restatement of what the tables are already."""
    return tables


_STEPS: dict[str, Callable[[Tables, Event], Tables]] = {
    "stream_started": _started,
    "broker_registered": _registered,
    "broker_updated": _updated,
    "broker_removed": _removed,
    "topics_changed": _topics,
    "mappings_changed": _mappings,
    "drain_changed": _drain,
    "kv_changed": _kv,
    "settings_changed": _settings,
    "hold_changed": _hold,
    "conflict_seen": _nothing,
    "checkpoint": _nothing,
}


def _member(event: Event) -> str:
    return member_key(event.text("cluster"), event.text("addr"))


def _filters(event: Event, field: str) -> tuple[str, ...]:
    return event.json(field, tuple[str, ...]) if event.text(field) else ()


def _broker(tables: Tables, event: Event, name: str) -> FoldedBroker:
    broker = tables.brokers.get(name)
    if broker is None or not broker.addrs:
        raise FoldError(f"{event.id}: {event.kind} of broker {name!r}, which has no member")
    return broker


def _living(tables: Tables, event: Event) -> tuple[FoldedBroker, FoldedMember]:
    broker, member = _broker(tables, event, event.text("broker")), tables.members.get(_member(event))
    if member is None:
        raise FoldError(f"{event.id}: {event.kind} of an unknown member {_member(event)!r}")
    _same(event, "epoch", event.number("epoch"), broker.epoch)
    return broker, member


def _same(event: Event, what: str, told: object, folded: object) -> None:
    if told != folded:
        raise FoldError(f"{event.id}: {event.kind}: {what} is {told!r}, but {folded!r} by the entries before")


def _same_addrs(event: Event, broker: FoldedBroker) -> None:
    listed = {number: key.partition(":")[2] for number, key in broker.addrs.items()}
    _same(event, "addrs", event.json("addrs", dict[int, str]), listed)


def _without(table: Mapping[K, V], key: K) -> dict[K, V]:
    return {one: value for one, value in table.items() if one != key}
