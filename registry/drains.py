"""Drains: an operator keeps producers off a broker name, whatever its members register, restarts or not.

A drain is an overlay: routes show the stored queue data without the write bit."""

from collections.abc import Sequence
from typing import Any

import msgspec

from registry.damage.texts import is_text
from registry.errors import BrokerNotFound, InvalidField, ValueDamaged
from registry.growth.limits import DEFAULT_LIMITS, Limits
from registry.keys import Keys
from registry.long_work.scan import scan_pages, some_of
from registry.plans import Origin, Plan, ScriptCall, as_json
from rocketmq_remoting.typed import converted, decoded

NAMES_MAX = 100  # of a script


class Drain(msgspec.Struct, frozen=True, omit_defaults=True):
    """Its owner and reason; it ends at `until_ms` (Unix ms of the Redis clock), by itself only if that is given."""

    owner: str
    reason: str
    until_ms: int | None = None


class StoredDrain(Drain, frozen=True):
    """`since_ms` is when it was set; None where a process of 0.1 did, which did not note it."""

    since_ms: int | None = None


class DrainedBroker(msgspec.Struct, frozen=True):
    """A broker name whose drain is in force, and how many topics it has.

    `cluster` is None while no member is registered; `drain` is None where what is stored is none, which routes obey."""

    name: str
    drain: StoredDrain | None
    cluster: str | None
    topics: int


class Drained(msgspec.Struct, frozen=True, array_like=True):
    """The last entry written, "" when nothing changed, and how many topics the broker has."""

    event_id: str
    topics: int


def drain(
    keys: Keys, name: str, wanted: Drain, origin: Origin, limits: Limits = DEFAULT_LIMITS
) -> Plan[Drained]:
    """Drain a broker, or replace its drain. Raises BrokerNotFound, InvalidField, ValueDamaged, LimitReached."""
    request = {"origin": origin, "name": name, "after": as_json(wanted).decode(), "limits": limits}
    if wanted.until_ms is not None:
        request["ends"] = wanted.until_ms
    return (yield from _written(keys, request, limits))


def undrain(keys: Keys, name: str, origin: Origin) -> Plan[Drained]:
    """End a drain, if there is one; of a broker that is gone too. Raises BrokerNotFound."""
    return (yield from _written(keys, {"origin": origin, "name": name}))


def drain_of(keys: Keys, name: str) -> Plan[StoredDrain | None]:
    """Return the drain that is in force, or None. Raises ValueDamaged for what is none, which routes obey."""
    for broker in (yield from drained_brokers(keys, (name,))):
        if broker.drain is None:
            raise ValueDamaged(
                f"the store's drain of broker {name!r} is no drain, and keeps producers off: set it again, or end it"
            )
        return broker.drain
    return None


def drained_names(keys: Keys) -> Plan[tuple[str, ...]]:
    """Return the broker names that have a drain, sorted; those whose end is not recorded yet are among them."""
    names = set[str]()
    yield from scan_pages(keys.drains, names.update)
    return tuple(sorted(filter(is_text, names)))


def drained_brokers(keys: Keys, names: Sequence[str]) -> Plan[tuple[DrainedBroker, ...]]:
    """Return those of the names whose drain is in force, in the order given. A hundred are read at one moment."""
    drained: list[DrainedBroker] = []
    done = 0
    while done < len(names):
        asked = some_of(names, done, NAMES_MAX)
        rows = yield ScriptCall("read_drains", (keys.events_meta,), tuple(asked))
        drained += [_drained_broker(*row) for row in rows]
        done += len(asked)
    return tuple(drained)


def _drained_broker(name: str, text: str, cluster: str | None, topics: Any) -> DrainedBroker:
    try:
        stored = decoded(text.encode(errors="replace"), StoredDrain)
    except msgspec.MsgspecError:
        stored = None
    return DrainedBroker(name, stored, cluster if cluster and is_text(cluster) else None, int(topics))


def _written(keys: Keys, request: dict[str, object], limits: Limits = DEFAULT_LIMITS) -> Plan[Drained]:
    reply = yield ScriptCall(
        "set_drain", (keys.events_meta, keys.drains, keys.drain_ends), (as_json(request),)
    )
    match reply:
        case ["unknown"]:
            raise BrokerNotFound(f"no broker {request['name']!r}")
        case ["past"]:
            raise InvalidField("untilMillis", "is not in the future")
    return converted(limits.check_reply(reply, f"drain of {request['name']!r}"), Drained)
