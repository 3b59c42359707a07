"""What a namespace holds in Redis, read whole: as tables, and as the entries that lead to them."""

from typing import Any, TypeAlias

from registry.events.entry import Event
from registry.events.replay import BrokerState, MemberState, Tables, replay
from registry.keys import Keys

Store: TypeAlias = Any  # a redis.Redis whose replies are text, which its type does not tell


def entries(store: Store, keys: Keys, after: str = "-") -> list[Event]:
    """The stream's entries behind the id `after`."""
    start = after if after == "-" else f"({after}"
    return [Event.of(*entry) for entry in store.xrange(keys.events, min=start)]


def replayed(store: Store, keys: Keys) -> Tables:
    """What the whole stream leads to; raises ReplayError."""
    return replay(Tables(), entries(store, keys))


def tables(store: Store, keys: Keys) -> Tables:
    """What the keys say, and what readers see of it: fields of other epochs left out."""
    brokers = {name: _broker(store, keys, name) for name in store.smembers(keys.brokers)}
    members = {key: _member(store.hgetall(keys.member(key))) for key in store.zrange(keys.leases, 0, -1)}
    meta = store.hgetall(keys.events_meta)
    hold = ""
    if "hold_from_ms" in meta:
        hold = f'{{"from_ms":{meta["hold_from_ms"]},"until_ms":{meta["hold_until_ms"]}}}'
    kv = {name: store.hgetall(keys.kv(name)) for name in store.smembers(keys.kv_namespaces)}
    return Tables(
        meta.get("inc", ""),
        int(meta.get("seq", 0)),
        brokers,
        members,
        kv,
        store.hgetall(keys.settings),
        drains=store.hgetall(keys.drains),
        hold=hold,
    )


def assert_replays(store: Store, keys: Keys, so_far: Tables | None = None) -> Tables:
    """The entries lead to exactly what the keys say; returns their tables."""
    by_events = replayed(store, keys) if so_far is None else so_far
    by_keys = tables(store, keys)
    assert by_events.living() == by_keys.brokers
    assert by_events.members == by_keys.members
    assert {name: table for name, table in by_events.kv.items() if table} == {
        name: table for name, table in by_keys.kv.items() if table
    }
    assert (by_events.inc, by_events.seq, by_events.settings, by_events.drains, by_events.hold) == (
        by_keys.inc,
        by_keys.seq,
        by_keys.settings,
        by_keys.drains,
        by_keys.hold,
    )
    return by_events


def _broker(store: Store, keys: Keys, name: str) -> BrokerState:
    fields = store.hgetall(keys.broker(name))
    epoch = fields["epoch"]
    return BrokerState(
        int(epoch),
        fields["cluster"],
        frozenset(field[3:] for field in fields if field.startswith("in:")),
        fields["acting"] == "1",
        fields.get("zone", ""),
        {int(field[5:]): key for field, key in fields.items() if field.startswith("addr:")},
        _current(store.hgetall(keys.topics_of(name)), epoch),
        {
            topic: text.encode()
            for topic, text in _current(store.hgetall(keys.mappings_of(name)), epoch).items()
        },
    )


def _member(fields: dict[str, str]) -> MemberState:
    filters = fields.get("filters", "[]")[1:-1]
    return MemberState(
        fields.get("ha", ""),
        int(fields["timeout"]),
        tuple(one.strip('"') for one in filters.split(",") if one),
        fields.get("dv", ""),
        fields.get("mirrored", ""),
    )


def _current(stored: dict[str, str], epoch: str) -> dict[str, str]:
    return {
        topic: text.partition(",")[2] for topic, text in stored.items() if text.partition(",")[0] == epoch
    }
