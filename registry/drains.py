"""Drains: an operator keeps producers off a broker name, whatever its members register, restarts or not.

A drain is an overlay: routes show the stored queue data without the write bit."""

import msgspec

from registry.errors import BrokerNotFound, InvalidField
from registry.keys import Keys
from registry.plans import Act, Batch, Plan, ScriptCall, as_json, call


class Drain(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whose it is and why; it ends at `until_ms` (Unix ms of the Redis clock), by itself only if that is given."""

    owner: str
    reason: str
    until_ms: int | None = None


class Drained(msgspec.Struct, frozen=True):
    """The last entry written, "" when nothing changed, and how many topics the broker has."""

    event_id: str
    topics: int


def drain(keys: Keys, name: str, wanted: Drain, act: Act) -> Plan[Drained]:
    """Drain a broker, or replace its drain. Raises BrokerNotFound, InvalidField."""
    request = {"act": act, "name": name, "after": as_json(wanted).decode()}
    if wanted.until_ms is not None:
        request["ends"] = wanted.until_ms
    return (yield from _written(keys, request))


def undrain(keys: Keys, name: str, act: Act) -> Plan[Drained]:
    """End a drain, if there is one; of a broker that is gone too. Raises BrokerNotFound."""
    return (yield from _written(keys, {"act": act, "name": name}))


def drain_of(keys: Keys, name: str) -> Plan[Drain | None]:
    """The drain that holds now."""
    (seconds, micros), text = yield Batch((call("TIME"), call("HGET", keys.drains, name)))
    if text is None:
        return None
    found = msgspec.json.decode(text, type=Drain)
    over = found.until_ms is not None and found.until_ms <= int(seconds) * 1000 + int(micros) // 1000
    return None if over else found


def _written(keys: Keys, request: dict[str, object]) -> Plan[Drained]:
    reply = yield ScriptCall("drain", (keys.events_meta, keys.drains, keys.drain_ends), (as_json(request),))
    if reply[0] == "unknown":
        raise BrokerNotFound(f"no broker {request['name']!r}")
    if reply[0] == "past":
        raise InvalidField("untilMillis", "is not in the future")
    return Drained(reply[0], int(reply[1]))
