"""Checkpoint rounds in a replay: a round completes tables that are not whole, and proves those that are."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from registry.events.entry import Event
from registry.events.replay_changes import mappings_changed, nothing, topics_changed
from registry.events.replay_checks import CheckpointDiffers, ReplayError, without
from registry.events.tables import BrokerState, CheckpointRound, MemberState, Tables
from registry.keys import member_key


def checkpoint(tables: Tables, event: Event) -> Tables:
    """Apply an entry of a round; skip it when the round began before these tables."""
    number, scope, under_way = event.get("round"), event.get("scope"), tables.round
    if scope == "begin":
        return replace(tables, round=CheckpointRound(number, 1, Tables(hold=event.get("hold"), whole=False)))
    if under_way is None or under_way.number != number:
        return tables
    entries = under_way.entries + 1
    if scope == "end":
        if event.number("entries") != entries:
            raise ReplayError(f"{event.id}: {event.get('entries')} entries of round {number}, not {entries}")
        return _ended(tables, event, under_way.tables)
    checkpointed = SCOPES.get(scope, nothing)(under_way.tables, event)
    return replace(tables, round=CheckpointRound(number, entries, checkpointed))


def _ended(tables: Tables, event: Event, checkpoint: Tables) -> Tables:
    """Return the round's tables, or those that are whole already, which the round has to equal."""
    checkpoint = replace(checkpoint, whole=True, inc=event.incarnation, seq=event.number("seq"))
    if not tables.whole:
        return checkpoint
    replayed, checkpointed = dict(_rows(tables)), dict(_rows(checkpoint))
    differences = [
        f"{row} is {checkpointed.get(row)!r}, but {replayed.get(row)!r} by the entries before"
        for row in sorted(replayed.keys() | checkpointed.keys())
        if replayed.get(row) != checkpointed.get(row)
    ]
    if differences:
        raise CheckpointDiffers(event.id, differences, checkpoint)
    return replace(tables, round=None)


def _rows(tables: Tables) -> Iterator[tuple[tuple[str, ...], object]]:
    """Return every row of the tables under its table's name and its own."""
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


class _CheckpointMember(msgspec.Struct, frozen=True):
    cluster: str
    addr: str
    ha: str
    timeout_ms: int
    filters: tuple[str, ...]
    dv: str
    mirrored: str = ""


def _checkpoint_broker(tables: Tables, event: Event) -> Tables:
    name = event.get("broker")
    drains = without(tables.drains, name)
    if "drain" in event.fields:
        drains[name] = event.get("drain")
    tables = replace(tables, drains=drains)
    if "epoch" not in event.fields:  # only the drain is there
        return tables
    clusters = frozenset(event.json("clusters", list[str]))
    acting, zone = event.get("acting") == "1", event.get("zone")
    broker = BrokerState(event.number("epoch"), event.get("cluster"), clusters, acting, zone)
    return _checkpoint_members(replace(tables, brokers={**tables.brokers, name: broker}), event)


def _checkpoint_members(tables: Tables, event: Event) -> Tables:
    name = event.get("broker")
    addrs, members = dict(tables.brokers[name].addrs), dict(tables.members)
    for number, member in event.json("members", dict[int, _CheckpointMember]).items():
        key = addrs[number] = member_key(member.cluster, member.addr)
        members[key] = MemberState(member.ha, member.timeout_ms, member.filters, member.dv, member.mirrored)
    broker = replace(tables.brokers[name], addrs=addrs)
    return replace(tables, brokers={**tables.brokers, name: broker}, members=members)


def _checkpoint_kv(tables: Tables, event: Event) -> Tables:
    namespace, values = event.get("kv_ns"), event.json("values", dict[str, str | int])
    texts = {key: value if isinstance(value, str) else None for key, value in values.items()}
    return replace(tables, kv={**tables.kv, namespace: tables.kv.get(namespace, {}) | texts})


def _checkpoint_settings(tables: Tables, event: Event) -> Tables:
    return replace(tables, settings=event.json("settings", dict[str, str]))


SCOPES: Final[dict[str, Callable[[Tables, Event], Tables]]] = {
    "broker": _checkpoint_broker,
    "members": _checkpoint_members,
    "topics": topics_changed,
    "mappings": mappings_changed,
    "kv": _checkpoint_kv,
    "settings": _checkpoint_settings,
}
