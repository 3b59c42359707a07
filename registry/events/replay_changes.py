"""What each kind of entry changes in the tables: one step a kind, from tables to tables."""

from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from registry.events.entry import Event
from registry.events.replay_checks import ReplayError, broker_of, living, member_of, same, same_addrs, without
from registry.events.tables import BrokerState, MemberState, Tables

Row: TypeAlias = tuple[str, str, str, tuple[str, ...]]
MappingRow: TypeAlias = tuple[str, str, msgspec.Raw, msgspec.Raw]
NO_INFO: Final = b"null"


def stream_started(tables: Tables, event: Event) -> Tables:
    """Begin a new incarnation: of an empty store, or of tables that a checkpoint round will record."""
    if event.number("seq") != 1:
        raise ReplayError(f"{event.id}: a stream that starts with {event.number('seq')}")
    return Tables() if event.cause == "empty_store" else tables.incomplete()


def broker_registered(tables: Tables, event: Event) -> Tables:
    """Add a member to a broker, and the broker with its first one."""
    name, key, number = event.get("broker"), member_of(event), event.number("id")
    epoch, own = event.number("epoch"), event.get("cluster")
    group = event.get("group_cluster") or own
    broker = tables.brokers.get(name)
    if broker is None or broker.epoch != epoch:
        same(tables, event, "members of an older epoch", broker.addrs if broker else {}, {})
        broker = BrokerState(epoch, group, frozenset())
    same(tables, event, "group_cluster", group, broker.cluster)
    same(tables, event, "holder of the id", broker.addrs.get(number), None)
    broker = replace(
        broker,
        clusters=broker.clusters | {own},
        acting=event.get("acting") == "1",
        zone=event.get("zone"),
        addrs={**broker.addrs, number: key},
    )
    same_addrs(tables, event, broker)
    member = MemberState(
        event.get("ha"),
        event.number("timeout_ms"),
        _filters(event, "filters"),
        event.get("dv"),
        event.get("mirrored"),
    )
    return replace(tables, brokers={**tables.brokers, name: broker}, members={**tables.members, key: member})


def broker_updated(tables: Tables, event: Event) -> Tables:
    """Change attributes of a broker or member."""
    name, key = event.get("broker"), member_of(event)
    broker, member = living(tables, event)
    brokers, members = tables.brokers, tables.members
    if broker is not None:
        same(tables, event, "member", broker.addrs.get(event.number("id")), key)
        brokers = {**brokers, name: _updated_broker(tables, event, broker)}
    if member is not None:
        members = {**members, key: _updated_member(tables, event, member)}
    return replace(tables, brokers=brokers, members=members)


def _updated_broker(tables: Tables, event: Event, broker: BrokerState) -> BrokerState:
    given = event.fields
    if "zone" in given:
        same(tables, event, "zone_before", event.get("zone_before"), broker.zone)
        broker = replace(broker, zone=given["zone"])
    if "acting" in given:
        same(tables, event, "acting_before", event.get("acting_before") == "1", broker.acting)
        broker = replace(broker, acting=given["acting"] == "1")
    return broker


def _updated_member(tables: Tables, event: Event, member: MemberState) -> MemberState:
    given = event.fields
    if "ha" in given:
        same(tables, event, "ha_before", event.get("ha_before"), member.ha)
        member = replace(member, ha=given["ha"])
    if "timeout_ms" in given:
        same(tables, event, "timeout_ms_before", event.number("timeout_ms_before"), member.timeout_ms)
        member = replace(member, timeout_ms=event.number("timeout_ms"))
    if "filters" in given:
        same(tables, event, "filters_before", _filters(event, "filters_before"), member.filters)
        member = replace(member, filters=_filters(event, "filters"))
    if "dv" in given:
        same(tables, event, "dv_before", event.get("dv_before"), member.version)
        member = replace(member, version=given["dv"])
    if "mirrored" in given:
        same(tables, event, "mirrored_before", event.get("mirrored_before"), member.mirrored)
        member = replace(member, mirrored=given["mirrored"])
    return member


def _with_version(tables: Tables, event: Event) -> Tables:
    """Change the member's data version, if an entry of topics has the one before."""
    if "dv_before" not in event.fields:
        return tables
    _, member = living(tables, event)
    if member is None:
        return tables
    return replace(
        tables, members={**tables.members, member_of(event): _updated_member(tables, event, member)}
    )


def broker_removed(tables: Tables, event: Event) -> Tables:
    """Remove a member from a broker."""
    name, key, number = event.get("broker"), member_of(event), event.number("id")
    broker, member = living(tables, event)
    brokers = tables.brokers
    if broker is not None:
        same(tables, event, "member", broker.addrs.get(number), key)
        broker = replace(broker, addrs=without(broker.addrs, number))
        same_addrs(tables, event, broker)
        brokers = {**brokers, name: broker}
    if member is not None:
        same(tables, event, "dv", event.get("dv"), member.version)
    listed = any(key in state.addrs.values() for state in brokers.values())
    return replace(
        tables, brokers=brokers, members=tables.members if listed else without(tables.members, key)
    )


def topics_changed(tables: Tables, event: Event) -> Tables:
    """Change queue data."""
    brokers, count = dict(tables.brokers), 0
    for name, before, after, topics in event.json("rows", list[Row]):
        broker = broker_of(tables, event, name)
        if broker is None:
            continue
        changed = dict(brokers[name].topics)
        for topic in topics:
            same(tables, event, f"{name} {topic}", before, changed.pop(topic, ""))
            if after:
                changed[topic] = after
        brokers[name] = replace(brokers[name], topics=changed)
        count += len(topics)
        if "epoch" in event.fields:
            same(tables, event, "epoch", event.number("epoch"), broker.epoch)
    same(tables, event, "count", event.number("count"), count)
    return _with_version(replace(tables, brokers=brokers), event)


def mappings_changed(tables: Tables, event: Event) -> Tables:
    """Change infos of static topics."""
    brokers = dict(tables.brokers)
    for name, topic, before, after in event.json("rows", list[MappingRow]):
        if broker_of(tables, event, name) is None:
            continue
        changed = dict(brokers[name].mappings)
        same(tables, event, f"{name} {topic}", bytes(before), changed.pop(topic, NO_INFO))
        if bytes(after) != NO_INFO:
            changed[topic] = bytes(after)
        brokers[name] = replace(brokers[name], mappings=changed)
    return _with_version(replace(tables, brokers=brokers), event)


def kv_changed(tables: Tables, event: Event) -> Tables:
    """Put or delete a KV entry."""
    namespace, key = event.get("kv_ns"), event.get("key")
    table = tables.kv.get(namespace, {})
    before = table.get(key)
    if "before_bytes" not in event.fields and before is not None:
        same(tables, event, "before", event.fields.get("before"), before)
    values = without(table, key)
    if event.cause != "delete":
        values[key] = event.fields.get("after")
    return replace(tables, kv={**tables.kv, namespace: values})


def settings_changed(tables: Tables, event: Event) -> Tables:
    """Change shared options."""
    changes = event.json("changes", dict[str, tuple[str | None, str]])
    for option, (before, _) in changes.items():
        same(tables, event, option, before, tables.settings.get(option))
    return replace(
        tables, settings=tables.settings | {option: after for option, (_, after) in changes.items()}
    )


def hold_changed(tables: Tables, event: Event) -> Tables:
    """Set or end the hold of leases."""
    same(tables, event, "before", event.get("before"), tables.hold)
    return replace(tables, hold=event.get("after"))


def drain_changed(tables: Tables, event: Event) -> Tables:
    """Set or end the drain of a broker name."""
    name, after = event.get("broker"), event.get("after")
    same(tables, event, "before", event.get("before"), tables.drains.get(name, ""))
    drains = without(tables.drains, name)
    return replace(tables, drains=drains | {name: after} if after else drains)


def tables_repaired(tables: Tables, _: Event) -> Tables:
    """Wait for a checkpoint round: rows had gone, or were other ones, without an entry."""
    return tables.incomplete()


def nothing(tables: Tables, _: Event) -> Tables:
    """Return the same tables: the entry changes none."""
    return tables


def _filters(event: Event, field: str) -> tuple[str, ...]:
    return event.json(field, tuple[str, ...]) if event.get(field) else ()
