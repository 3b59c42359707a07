"""The type that each key of a table must have: no script can read one of another type."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from redis.exceptions import ResponseError

from registry.keys import ORDER_TOPIC_CONFIG, Keys, split_member_key
from registry.plans import Batch, Plan, ScriptCall, call

Types: TypeAlias = Mapping[str, str]
EPOCH: Final = re.compile(r"[1-9][0-9]{0,13}", re.ASCII)
"""As lua/includes/sound.lua has it."""
KEYS_MOST: Final = 500  # of one script


def types_of_lists(keys: Keys) -> Types:
    """Return those of keys that each namespace has once."""
    of_type = {
        "string": (keys.epoch,),
        "set": (keys.brokers, keys.clusters, keys.topics, keys.kv_namespaces, keys.events_round_left),
        "zset": (keys.leases, keys.lapses, keys.workers, keys.drain_ends, keys.events_offsets),
        "stream": (keys.events, keys.audit, keys.heartbeats),
        "hash": (
            *(keys.events_meta, keys.events_consumers, keys.events_asked, keys.events_round),
            *(keys.drains, keys.kv(ORDER_TOPIC_CONFIG), keys.settings, keys.settings_given),
            *(keys.deferred, keys.repair),
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


def is_wrong_type(error: ResponseError) -> bool:
    """Whether a command or script met a key of another type than its own."""
    return str(error).startswith("WRONGTYPE")


def delete_wrong(types: Types) -> Plan[int]:
    """Delete the keys that have another type; return how many."""
    if not types:
        return 0
    of_type: dict[str, list[str]] = {}
    for key, type_ in types.items():
        of_type.setdefault(type_, []).append(key)
    deleted = yield Batch(
        tuple(
            ScriptCall("delete_wrong_type", tuple(keys[start : start + KEYS_MOST]), (type_,))
            for type_, keys in of_type.items()
            for start in range(0, len(keys), KEYS_MOST)
        )
    )
    return sum(deleted)


def delete_wrong_epoch(keys: Keys) -> Plan[int]:
    """Delete a last epoch that is no number, or too long to count on; brokers' epochs then tell one (their repair).
    Return how many keys."""
    epoch = yield call("GET", keys.epoch)
    if epoch is None or EPOCH.fullmatch(epoch):
        return 0
    yield call("DEL", keys.epoch)
    return 1
