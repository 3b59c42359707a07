"""The tables that a stretch of the event stream leads to: what history is read by, and what proves the entries.

Every value is frozen; `fold` verifies as it goes that no entry is missing and that each one starts from what the
entries before it led to. A checkpoint round makes a fold whole that does not know all, and proves one that does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
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


class RestatedOtherwise(FoldError):
    """A checkpoint round says otherwise than the entries before it: an entry was wrong, or somebody wrote by hand.

    `differences` are lines for people; `restated` is what the round says, for whoever wants to go on with that."""

    def __init__(self, event_id: str, differences: list[str], restated: "Tables") -> None:
        super().__init__(f"{event_id}: restated otherwise: {'; '.join(differences)}")
        self.differences = differences
        self.restated = restated


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
    for an entry are None.

    Unless they are `whole` there may be more, and other, than what these tables say: nothing is verified then, and
    what entries say of things that are not known is left out. `round` is the checkpoint round under way."""

    inc: str = ""
    seq: int = 0
    brokers: dict[str, FoldedBroker] = {}
    members: dict[str, FoldedMember] = {}
    kv: dict[str, dict[str, str | None]] = {}
    settings: dict[str, str] = {}
    drains: dict[str, str] = {}
    hold: str = ""
    whole: bool = True
    round: "Restating | None" = None

    def incomplete(self) -> "Tables":
        """The same where entries are missing, for a fold that goes on behind them: any entry may be the next."""
        return replace(self, inc="", seq=0, whole=False, round=None)

    def living(self) -> dict[str, FoldedBroker]:
        """The brokers that have a member."""
        return {name: broker for name, broker in self.brokers.items() if broker.addrs}


class Restating(msgspec.Struct, frozen=True):
    """A checkpoint round under way: its number, how many entries it has had, and what they and the changes since its
    begin say."""

    number: str
    entries: int
    tables: Tables


UNKNOWN = Tables(whole=False)
"""Where a fold begins in the midst of a stream."""


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
    told, begins = (event.text("inc"), event.number("seq")), event.kind == "stream_started"
    if told != (tables.inc, tables.seq + 1) and not begins and (tables.whole or tables.inc):
        raise FoldError(f"{event.id}: {told[0]}/{told[1]} follows {tables.inc}/{tables.seq}")
    after = step(tables, event)
    if tables.round is not None and event.kind not in ("stream_started", "checkpoint"):
        after = replace(after, round=replace(tables.round, tables=step(tables.round.tables, event)))
    return replace(after, inc=told[0], seq=told[1])


def _started(tables: Tables, event: Event) -> Tables:
    """A new incarnation: of an empty store, or of tables that a checkpoint round is to restate."""
    if event.number("seq") != 1:
        raise FoldError(f"{event.id}: a stream that starts with {event.number('seq')}")
    return Tables() if event.cause == "empty_store" else tables.incomplete()


def _registered(tables: Tables, event: Event) -> Tables:
    name, key, number = event.text("broker"), _member(event), event.number("id")
    epoch, own = event.number("epoch"), event.text("cluster")
    group = event.text("group_cluster") or own
    broker = tables.brokers.get(name)
    if broker is None or broker.epoch != epoch:
        _same(tables, event, "members of an older epoch", broker.addrs if broker else {}, {})
        broker = FoldedBroker(epoch, group, frozenset())
    _same(tables, event, "group_cluster", group, broker.cluster)
    _same(tables, event, "holder of the id", broker.addrs.get(number), None)
    broker = replace(
        broker,
        clusters=broker.clusters | {own},
        acting=event.text("acting") == "1",
        zone=event.text("zone"),
        addrs={**broker.addrs, number: key},
    )
    _same_addrs(tables, event, broker)
    member = FoldedMember(
        event.text("ha"), event.number("timeout_ms"), _filters(event, "filters"), event.text("dv")
    )
    return replace(tables, brokers={**tables.brokers, name: broker}, members={**tables.members, key: member})


def _updated(tables: Tables, event: Event) -> Tables:
    name, key = event.text("broker"), _member(event)
    broker, member = _living(tables, event)
    brokers, members = tables.brokers, tables.members
    if broker is not None:
        _same(tables, event, "member", broker.addrs.get(event.number("id")), key)
        brokers = {**brokers, name: _updated_broker(tables, event, broker)}
    if member is not None:
        members = {**members, key: _updated_member(tables, event, member)}
    return replace(tables, brokers=brokers, members=members)


def _updated_broker(tables: Tables, event: Event, broker: FoldedBroker) -> FoldedBroker:
    given = event.fields
    if "zone" in given:
        _same(tables, event, "zone_before", event.text("zone_before"), broker.zone)
        broker = replace(broker, zone=given["zone"])
    if "acting" in given:
        _same(tables, event, "acting_before", event.text("acting_before") == "1", broker.acting)
        broker = replace(broker, acting=given["acting"] == "1")
    return broker


def _updated_member(tables: Tables, event: Event, member: FoldedMember) -> FoldedMember:
    given = event.fields
    if "ha" in given:
        _same(tables, event, "ha_before", event.text("ha_before"), member.ha)
        member = replace(member, ha=given["ha"])
    if "timeout_ms" in given:
        _same(tables, event, "timeout_ms_before", event.number("timeout_ms_before"), member.timeout_ms)
        member = replace(member, timeout_ms=event.number("timeout_ms"))
    if "filters" in given:
        _same(tables, event, "filters_before", _filters(event, "filters_before"), member.filters)
        member = replace(member, filters=_filters(event, "filters"))
    if "dv" in given:
        _same(tables, event, "dv_before", event.text("dv_before"), member.version)
        member = replace(member, version=given["dv"])
    return member


def _removed(tables: Tables, event: Event) -> Tables:
    name, key, number = event.text("broker"), _member(event), event.number("id")
    broker, member = _living(tables, event)
    brokers = tables.brokers
    if broker is not None:
        _same(tables, event, "member", broker.addrs.get(number), key)
        broker = replace(broker, addrs=_without(broker.addrs, number))
        _same_addrs(tables, event, broker)
        brokers = {**brokers, name: broker}
    if member is not None:
        _same(tables, event, "dv", event.text("dv"), member.version)
    listed = any(key in one.addrs.values() for one in brokers.values())
    return replace(
        tables, brokers=brokers, members=tables.members if listed else _without(tables.members, key)
    )


def _topics(tables: Tables, event: Event) -> Tables:
    brokers, count = dict(tables.brokers), 0
    for name, before, after, topics in event.json("rows", list[Row]):
        broker = _broker(tables, event, name)
        if broker is None:
            continue
        changed = dict(brokers[name].topics)
        for topic in topics:
            _same(tables, event, f"{name} {topic}", before, changed.pop(topic, ""))
            if after:
                changed[topic] = after
        brokers[name] = replace(brokers[name], topics=changed)
        count += len(topics)
        if "epoch" in event.fields:
            _same(tables, event, "epoch", event.number("epoch"), broker.epoch)
    _same(tables, event, "count", event.number("count"), count)
    return replace(tables, brokers=brokers)


def _mappings(tables: Tables, event: Event) -> Tables:
    brokers = dict(tables.brokers)
    for name, topic, before, after in event.json("rows", list[MappingRow]):
        if _broker(tables, event, name) is None:
            continue
        changed = dict(brokers[name].mappings)
        _same(tables, event, f"{name} {topic}", bytes(before), changed.pop(topic, NO_INFO))
        if bytes(after) != NO_INFO:
            changed[topic] = bytes(after)
        brokers[name] = replace(brokers[name], mappings=changed)
    return replace(tables, brokers=brokers)


def _kv(tables: Tables, event: Event) -> Tables:
    namespace, key = event.text("kv_ns"), event.text("key")
    table = tables.kv.get(namespace, {})
    before = table.get(key)
    if "before_bytes" not in event.fields and before is not None:
        _same(tables, event, "before", event.fields.get("before"), before)
    kept = _without(table, key)
    if event.cause != "delete":
        kept[key] = event.fields.get("after")
    return replace(tables, kv={**tables.kv, namespace: kept})


def _settings(tables: Tables, event: Event) -> Tables:
    changes = event.json("changes", dict[str, tuple[str | None, str]])
    for option, (before, _) in changes.items():
        _same(tables, event, option, before, tables.settings.get(option))
    return replace(
        tables, settings=tables.settings | {option: after for option, (_, after) in changes.items()}
    )


def _hold(tables: Tables, event: Event) -> Tables:
    _same(tables, event, "before", event.text("before"), tables.hold)
    return replace(tables, hold=event.text("after"))


def _drain(tables: Tables, event: Event) -> Tables:
    name, after = event.text("broker"), event.text("after")
    _same(tables, event, "before", event.text("before"), tables.drains.get(name, ""))
    kept = _without(tables.drains, name)
    return replace(tables, drains=kept | {name: after} if after else kept)


def _nothing(tables: Tables, _: Event) -> Tables:
    """A judgement."""
    return tables


def _checkpoint(tables: Tables, event: Event) -> Tables:
    """An entry of a round; one whose begin was before these tables tells nothing."""
    number, scope, under_way = event.text("round"), event.text("scope"), tables.round
    if scope == "begin":
        return replace(tables, round=Restating(number, 1, Tables(hold=event.text("hold"), whole=False)))
    if under_way is None or under_way.number != number:
        return tables
    entries = under_way.entries + 1
    if scope == "end":
        if event.number("entries") != entries:
            raise FoldError(f"{event.id}: {event.text('entries')} entries of round {number}, not {entries}")
        return _ended(tables, event, under_way.tables)
    restated = _SCOPES.get(scope, _nothing)(under_way.tables, event)
    return replace(tables, round=Restating(number, entries, restated))


def _ended(tables: Tables, event: Event, restated: Tables) -> Tables:
    """What is whole already stays; what the round says is proof of it."""
    restated = replace(restated, whole=True, inc=event.text("inc"), seq=event.number("seq"))
    if not tables.whole:
        return restated
    folded, found = dict(_parts(tables)), dict(_parts(restated))
    differences = [
        f"{part} is {found.get(part)!r}, but {folded.get(part)!r} by the entries before"
        for part in sorted(folded.keys() | found.keys())
        if folded.get(part) != found.get(part)
    ]
    if differences:
        raise RestatedOtherwise(event.id, differences, restated)
    return replace(tables, round=None)


def _parts(tables: Tables) -> Iterator[tuple[tuple[str, ...], object]]:
    """All that tables say of what is there now, by what it is."""
    for name, broker in tables.living().items():
        yield ("broker", name), replace(broker, topics={}, mappings={})
        yield from ((("topic", name, topic), text) for topic, text in broker.topics.items())
        yield from ((("mapping", name, topic), info) for topic, info in broker.mappings.items())
    yield from ((("member", key), member) for key, member in tables.members.items())
    for namespace, table in tables.kv.items():
        yield from ((("kv", namespace, key), (value,)) for key, value in table.items())
    yield from ((("setting", option), value) for option, value in tables.settings.items())
    yield from ((("drain", name), drain) for name, drain in tables.drains.items())
    yield ("hold",), tables.hold


class _RestatedMember(msgspec.Struct, frozen=True):
    cluster: str
    addr: str
    ha: str
    timeout_ms: int
    filters: tuple[str, ...]
    dv: str


def _broker_restated(tables: Tables, event: Event) -> Tables:
    name = event.text("broker")
    drains = _without(tables.drains, name)
    if "drain" in event.fields:
        drains[name] = event.text("drain")
    tables = replace(tables, drains=drains)
    if "epoch" not in event.fields:  # nothing is there but the drain
        return tables
    clusters = frozenset(event.json("clusters", list[str]))
    acting, zone = event.text("acting") == "1", event.text("zone")
    broker = FoldedBroker(event.number("epoch"), event.text("cluster"), clusters, acting, zone)
    return _members_restated(replace(tables, brokers={**tables.brokers, name: broker}), event)


def _members_restated(tables: Tables, event: Event) -> Tables:
    name = event.text("broker")
    addrs, members = dict(tables.brokers[name].addrs), dict(tables.members)
    for number, one in event.json("members", dict[int, _RestatedMember]).items():
        key = addrs[number] = member_key(one.cluster, one.addr)
        members[key] = FoldedMember(one.ha, one.timeout_ms, one.filters, one.dv)
    broker = replace(tables.brokers[name], addrs=addrs)
    return replace(tables, brokers={**tables.brokers, name: broker}, members=members)


def _kv_restated(tables: Tables, event: Event) -> Tables:
    namespace, values = event.text("kv_ns"), event.json("values", dict[str, str | int])
    told = {key: value if isinstance(value, str) else None for key, value in values.items()}
    return replace(tables, kv={**tables.kv, namespace: tables.kv.get(namespace, {}) | told})


def _settings_restated(tables: Tables, event: Event) -> Tables:
    return replace(tables, settings=event.json("settings", dict[str, str]))


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
    "checkpoint": _checkpoint,
}
_SCOPES: dict[str, Callable[[Tables, Event], Tables]] = {
    "broker": _broker_restated,
    "members": _members_restated,
    "topics": _topics,
    "mappings": _mappings,
    "kv": _kv_restated,
    "settings": _settings_restated,
}


def _member(event: Event) -> str:
    return member_key(event.text("cluster"), event.text("addr"))


def _filters(event: Event, field: str) -> tuple[str, ...]:
    return event.json(field, tuple[str, ...]) if event.text(field) else ()


def _broker(tables: Tables, event: Event, name: str) -> FoldedBroker | None:
    """None only of tables that are not whole."""
    broker = tables.brokers.get(name)
    if tables.whole and (broker is None or not broker.addrs):
        raise FoldError(f"{event.id}: {event.kind} of broker {name!r}, which has no member")
    return broker


def _living(tables: Tables, event: Event) -> tuple[FoldedBroker | None, FoldedMember | None]:
    """The broker and the member that an entry is about, None only of tables that are not whole."""
    broker, member = _broker(tables, event, event.text("broker")), tables.members.get(_member(event))
    if member is None and tables.whole:
        raise FoldError(f"{event.id}: {event.kind} of an unknown member {_member(event)!r}")
    if broker is not None:
        _same(tables, event, "epoch", event.number("epoch"), broker.epoch)
    return broker, member


def _same(tables: Tables, event: Event, what: str, told: object, folded: object) -> None:
    if told != folded and tables.whole:
        raise FoldError(f"{event.id}: {event.kind}: {what} is {told!r}, but {folded!r} by the entries before")


def _same_addrs(tables: Tables, event: Event, broker: FoldedBroker) -> None:
    listed = {number: key.partition(":")[2] for number, key in broker.addrs.items()}
    _same(tables, event, "addrs", event.json("addrs", dict[int, str]), listed)


def _without(table: Mapping[K, V], key: K) -> dict[K, V]:
    return {one: value for one, value in table.items() if one != key}
