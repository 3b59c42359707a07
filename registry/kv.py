"""KV configuration (100, 101, 102, 219) and its file form (kvConfig.json)."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from registry.damage.key_types import healed
from registry.damage.texts import is_text
from registry.errors import ConditionFailed, ConfigNotFound
from registry.growth.limits import DEFAULT_LIMITS, Limits
from registry.keys import Keys
from registry.long_work.sorting import in_order
from registry.plans import Batch, Origin, Plan, ScriptCall, as_json, ask, call

KVTables = Mapping[str, Mapping[str, str]]


class Conditions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tags of which a key has to have one, and those of which it must have none, before it is written.

    ANY is that of any value; None is no condition."""

    if_match: tuple[str, ...] | None = None
    if_none_match: tuple[str, ...] | None = None


ANY: Final = "*"
NO_CONDITIONS: Final = Conditions()


class TaggedValue(NamedTuple):
    """A value, and a tag that it shares with no other state of its key, one with the same value among them."""

    value: str
    tag: str


def get(keys: Keys, namespace: str, key: str) -> Plan[str]:
    """Return the value of a key. Raises ConfigNotFound."""
    value = yield call("HGET", keys.kv(namespace), key)
    if value is None:
        raise ConfigNotFound(f"no value of {key!r} in KV namespace {namespace!r}")
    return str(value)


def get_tagged(
    keys: Keys, namespace: str, key: str, if_match: tuple[str, ...] | None = None
) -> Plan[TaggedValue]:
    """Return the value of a key with its tag. Raises ConfigNotFound; ConditionFailed for other tags than these."""
    reply = yield ScriptCall("read_kv", (keys.kv(namespace),), (namespace, key))
    if not reply:
        raise ConfigNotFound(f"no value of {key!r} in KV namespace {namespace!r}")
    stored = TaggedValue(*map(str, reply))
    if if_match is not None and not {ANY, stored.tag}.intersection(if_match):
        raise ConditionFailed(namespace, key, stored.tag)
    return stored


def put(
    keys: Keys,
    namespace: str,
    key: str,
    value: str | None,
    origin: Origin,
    *,
    limits: Limits | None = DEFAULT_LIMITS,
    cause: str = "put",
    conditions: Conditions = NO_CONDITIONS,
) -> Plan[str]:
    """Set a value, making the namespace; None makes the namespace only. Returns the event id, "" if nothing changed.

    Raises LimitReached, ConditionFailed."""
    request: dict[str, object] = {
        "origin": origin,
        "cause": cause,
        "namespace": namespace,
        "key": key,
        "create": 1,
    } | msgspec.to_builtins(conditions)
    if value is not None:
        request["value"] = value
    if limits is None:
        return str((yield from _write(keys, namespace, request)))
    _check_entry(limits, namespace, key, value or "")
    written = yield from _write(keys, namespace, request | {"limits": limits})
    return str(limits.check_reply(written, f"key {key!r} of KV namespace {namespace!r}"))


def delete(
    keys: Keys, namespace: str, key: str, origin: Origin, conditions: Conditions = NO_CONDITIONS
) -> Plan[str]:
    """Delete a key; its namespace stays. Returns the event id, "" if there was none.

    Raises ConditionFailed for a key that is there."""
    request = {"origin": origin, "namespace": namespace, "key": key} | msgspec.to_builtins(conditions)
    try:
        return str((yield from _write(keys, namespace, request)))
    except ConditionFailed as error:
        if error.tag:
            raise
        return ""


def replace_table(
    keys: Keys, namespace: str, wanted: Mapping[str, str], origin: Origin, limits: Limits
) -> Plan[str]:
    """Replace the values of a namespace by these, key by key. Returns the id of the last event, one a change.

    Raises LimitReached: before the first write, unless another writer lets the namespace grow meanwhile."""
    for key, value in wanted.items():
        _check_entry(limits, namespace, key, value)
    read = partial(ask, call("HGETALL", keys.kv(namespace)))
    stored = yield from healed(keys, origin, read, lambda: {keys.kv(namespace): "hash"})
    growth = {key: _bytes(value) - _bytes_stored(stored, key) for key, value in wanted.items()}
    _check_table(limits, namespace, wanted, stored, growth)
    event_id = yield from put(keys, namespace, "", None, origin, limits=limits)
    for key in stored.keys() - wanted.keys():
        if is_text(key):
            event_id = (yield from delete(keys, namespace, key, origin)) or event_id
    for key in sorted(wanted, key=growth.__getitem__):  # so that no step has more bytes than the end
        event_id = (yield from put(keys, namespace, key, wanted[key], origin, limits=limits)) or event_id
    return event_id


def _check_entry(limits: Limits, namespace: str, key: str, value: str) -> None:
    limits.check_bytes("maxNameBytes", "namespace", namespace)
    limits.check_bytes("maxNameBytes", "key", key)
    limits.check_bytes("maxKvValueBytes", f"value of {key!r} in KV namespace {namespace!r}", value)


def _check_table(
    limits: Limits,
    namespace: str,
    wanted: Mapping[str, str],
    stored: Mapping[str, str],
    growth: Mapping[str, int],
) -> None:
    """Raise LimitReached where lua/set_kv.lua would refuse one of the writes; keys that are no text stay stored."""
    after = {key: value for key, value in stored.items() if not is_text(key)} | dict(wanted)
    subject = f"KV namespace {namespace!r} with {len(after)} keys"
    if wanted.keys() - stored.keys() and len(after) > limits.max_kv_keys:
        raise limits.reached("maxKvKeys", subject)
    size = sum(_bytes(key) + _bytes(value) for key, value in after.items())
    if size > limits.max_kv_namespace_bytes and any(more > 0 for more in growth.values()):
        raise limits.reached("maxKvNamespaceBytes", f"{subject} and {size} bytes")


def _bytes_stored(stored: Mapping[str, str], key: str) -> int:
    """Return the bytes of a stored value; of a key that is new, so that its growth has its own, minus those."""
    return _bytes(stored[key]) if key in stored else -_bytes(key)


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def table(keys: Keys, namespace: str) -> Plan[dict[str, str]]:
    """Return the values of a namespace by key, in order. Raises ConfigNotFound for a namespace that does not exist."""
    exists, found = yield Batch(
        (call("SISMEMBER", keys.kv_namespaces, namespace), call("HGETALL", keys.kv(namespace)))
    )
    if not exists:
        raise ConfigNotFound(f"no KV namespace {namespace!r}")
    stored = sendable(found)
    return {key: stored[key] for key in (yield from in_order(stored))}


def sendable(table: Mapping[str, str]) -> dict[str, str]:
    """Return the values that are text; others are damage, and no request could name them."""
    return {key: value for key, value in table.items() if is_text(key) and is_text(value)}


def namespaces(keys: Keys) -> Plan[tuple[str, ...]]:
    """Return the names of all KV namespaces."""
    return tuple(sorted(name for name in (yield call("SMEMBERS", keys.kv_namespaces)) if is_text(name)))


def export_table(keys: Keys) -> Plan[dict[str, dict[str, str]]]:
    """Return every namespace with its values, as kvConfig.json's `configTable` holds them."""
    tables: dict[str, dict[str, str]] = {}
    for name in (yield from namespaces(keys)):  # one after the other: a pipeline of all would hold the store
        tables[name] = sendable((yield call("HGETALL", keys.kv(name))))
    return tables


def import_table(keys: Keys, tables: KVTables, origin: Origin) -> Plan[bool]:
    """Import a kvConfig.json, whatever its size, into a store without KV; return False when it has some."""
    if (yield call("EXISTS", keys.kv_namespaces)):
        return False
    for namespace, values in tables.items():
        for key, value in values.items():
            yield from put(keys, namespace, key, value, origin, limits=None, cause="import")
        if not values:
            yield call("SADD", keys.kv_namespaces, namespace)
    return True


def _write(keys: Keys, namespace: str, request: Mapping[str, object]) -> Plan[Any]:
    """Return the reply of lua/set_kv.lua. Raises ConditionFailed."""
    origin, key = request["origin"], keys.kv(namespace)
    assert isinstance(origin, Origin)
    written = ScriptCall("set_kv", (keys.events_meta, keys.kv_namespaces, key), (as_json(request),))
    reply = yield from healed(keys, origin, partial(ask, written), lambda: {key: "hash"})
    match reply:
        case ["unmet", tag]:
            raise ConditionFailed(namespace, str(request["key"]), str(tag))
    return reply
