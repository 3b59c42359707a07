"""Drains: an operator keeps producers off a broker name, whatever its members register, restarts or not.

A drain is an overlay: routes show the stored queue data without the write bit."""

import msgspec

from registry.clock import TIME, unix_ms
from registry.errors import BrokerNotFound, InvalidField, ValueDamaged
from registry.growth.limits import DEFAULT_LIMITS, Limits
from registry.keys import Keys
from registry.plans import Batch, Origin, Plan, ScriptCall, as_json, call


class Drain(msgspec.Struct, frozen=True, omit_defaults=True):
    """Its owner and reason; it ends at `until_ms` (Unix ms of the Redis clock), by itself only if that is given."""

    owner: str
    reason: str
    until_ms: int | None = None


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


def drain_of(keys: Keys, name: str) -> Plan[Drain | None]:
    """Return the drain that is in force, or None. Raises ValueDamaged for what is none, which routes obey."""
    time, text = yield Batch((TIME, call("HGET", keys.drains, name)))
    if text is None:
        return None
    try:
        stored = msgspec.json.decode(text.encode(errors="replace"), type=Drain)
    except msgspec.MsgspecError:
        raise ValueDamaged(
            f"the store's drain of broker {name!r} is no drain, and keeps producers off: set it again, or end it"
        ) from None
    over = stored.until_ms is not None and stored.until_ms <= unix_ms(time)
    return None if over else stored


def _written(keys: Keys, request: dict[str, object], limits: Limits = DEFAULT_LIMITS) -> Plan[Drained]:
    reply = yield ScriptCall(
        "set_drain", (keys.events_meta, keys.drains, keys.drain_ends), (as_json(request),)
    )
    match reply:
        case ["unknown"]:
            raise BrokerNotFound(f"no broker {request['name']!r}")
        case ["past"]:
            raise InvalidField("untilMillis", "is not in the future")
    return msgspec.convert(limits.check_reply(reply, f"drain of {request['name']!r}"), Drained)
