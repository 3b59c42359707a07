"""The type that each key of a table must have: no script can read one of another type."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from redis.exceptions import ResponseError

from registry.keys import ORDER_TOPIC_CONFIG, Keys, split_member_key
from registry.plans import Batch, Origin, Plan, ScriptCall, as_json

T = TypeVar("T")
Types: TypeAlias = Mapping[str, str]
KEYS_MOST: Final = 500  # of one script
log = logging.getLogger(__name__)


def types_of_lists(keys: Keys) -> Types:
    """Return those of keys that each namespace has once."""
    of_type = {  # hashes and the stream first: the entry about others is appended with them
        "hash": (
            *(keys.events_meta, keys.events_consumers, keys.events_asked, keys.events_round),
            *(keys.drains, keys.kv(ORDER_TOPIC_CONFIG), keys.settings, keys.settings_given),
            *(keys.access_tokens, keys.access_revoked, keys.access_used, keys.access_reported),
            *(keys.deferred, keys.repair, keys.drift),
        ),
        "stream": (keys.events, keys.audit, keys.heartbeats, keys.event_summaries, keys.group_events),
        "string": (keys.epoch, keys.access_sessions),
        "set": (keys.brokers, keys.clusters, keys.topics, keys.kv_namespaces, keys.events_round_left),
        "zset": (
            *(keys.leases, keys.lapses, keys.workers, keys.announced, keys.drain_ends),
            *(keys.events_offsets, keys.gone, keys.refused),
        ),
    }
    return {key: kind for kind, names in of_type.items() for key in names}


def types_of_brokers(keys: Keys, names: Iterable[str]) -> Types:
    """Return those of brokers' entries and topics."""
    types = {}
    for name in names:
        for key in (keys.broker(name), keys.topics_of(name), keys.mappings_of(name)):
            types[key] = "hash"
        types[keys.pending(name)] = "string"
    return types


def types_of_members(keys: Keys, members: Iterable[str]) -> Types:
    """Return those of members, and of the clusters that they are in."""
    types = {}
    for member in members:
        types[keys.member(member)], types[keys.alive(member)] = "hash", "string"
        types[keys.cluster(split_member_key(member)[0])] = "set"
    return types


def types_of_leases(keys: Keys, members: Iterable[str], names: Iterable[str]) -> Types:
    """Return those of members that have leases, and of the brokers that they registered."""
    return {keys.leases: "zset", **types_of_members(keys, members), **types_of_brokers(keys, names)}


def types_of_topics(keys: Keys, topics: Iterable[str]) -> Types:
    """Return those of routes and static topics, and of the list of topics."""
    tables = {key: "hash" for topic in topics for key in (keys.route(topic), keys.mapping(topic))}
    return {keys.topics: "set", **tables}


def types_of_table(keys: Keys, name: str, topics: Iterable[str]) -> Types:
    """Return those of a broker's table and of the routes of its topics."""
    return {**types_of_brokers(keys, (name,)), **types_of_topics(keys, topics)}


def types_of_writes(keys: Keys, caller: str) -> Types:
    """Return that of the rate of a caller's writes over HTTP."""
    return {keys.http_writes(caller): "string"}


def is_wrong_type(error: ResponseError) -> bool:
    """Whether a command or script met a key of another type than its own."""
    return str(error).startswith("WRONGTYPE")


def delete_wrong(keys: Keys, types: Types, origin: Origin) -> Plan[list[str]]:
    """Delete the keys that have another type, append entries about them, and return them."""
    if not types:
        return []
    of_type: dict[str, list[str]] = {}
    for key, type_ in types.items():
        of_type.setdefault(type_, []).append(key)
    deleted: list[list[str]] = yield Batch(
        tuple(
            ScriptCall(
                "delete_wrong_type",
                (keys.events_meta, *of[start : start + KEYS_MOST]),
                (as_json({"origin": origin, "type": type_}),),
            )
            for type_, of in of_type.items()
            for start in range(0, len(of), KEYS_MOST)
        )
    )
    return [key for part in deleted for key in part]


def healed(keys: Keys, origin: Origin, plan: Callable[[], Plan[T]], types: Callable[[], Types]) -> Plan[T]:
    """Run a plan; if it meets a key of another type than in `types`, delete such keys and run it again.

    Walks over the tables find such keys too, but not under a name that no list has: it would be locked out for ever."""
    try:
        return (yield from plan())
    except ResponseError as error:
        deleted = (yield from delete_wrong(keys, types(), origin)) if is_wrong_type(error) else []
        if not deleted:
            raise
    log.warning(
        "keys had a wrong type and were deleted, what they held is lost: %s; find out what writes keys of the store, "
        "see docs/runbook.md",
        ", ".join(map(repr, deleted)),
    )
    return (yield from plan())
