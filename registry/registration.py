"""Registration of a broker (103), decided as RocketMQ 5.x RouteInfoManager.registerBroker decides it.

An unchanged registration is known by its signature and costs one short script; anything else is an `Attempt`.
"""

from typing import Any

from msgspec.structs import replace

from registry.attempt import Attempt
from registry.errors import BrokerBusy, InvalidField, RegistrationRefused
from registry.heartbeats import heard
from registry.keys import ORDER_TOPIC_CONFIG, Keys
from registry.plans import Act, Enter, Pause, Plan, ScriptItem, pairs
from registry.registering import (
    DEFAULT_TIMEOUT_MS,
    TIMEOUT_MAX_MS,
    Registered,
    Registration,
    Signature,
    signature,
)
from registry.registrar import Registrar
from registry.removal import settle_owed
from registry.renewals import Again
from remoting.json_cut import SLICE_BYTES

__all__ = ["DEFAULT_TIMEOUT_MS", "TIMEOUT_MAX_MS", "Registered", "Registration", "register"]

PENDING_PAUSE_S = 0.05
PENDING_PAUSES = 20
TRIES = 20


def register(
    keys: Keys,
    registration: Registration,
    act: Act,
    *,
    owner: str | None = None,
    delete_missing: bool = False,
    registrar: Registrar | None = None,
    told_as: int | None = None,
) -> Plan[Registered]:
    """Register a broker, or renew its lease when nothing changed.

    `owner` is the mark of the connection it came over, `<worker>/<connection>`; `delete_missing` is the option
    deleteTopicWithBrokerRegistration; `registrar` is that of a process which does this all the time; `told_as` is the
    request code under which an accepted one is kept (`registry.heartbeats`), None while they are not. Raises BodyError,
    RegistrationRefused, BrokerBusy, InvalidField.
    """
    done = yield from _registered(keys, registration, act, owner, delete_missing, registrar)
    if told_as is None or done.refused:
        return done
    yield from heard(keys, registration.cluster, registration.address, told_as)
    return replace(done, again=None)  # the next one is kept too


def _registered(
    keys: Keys,
    registration: Registration,
    act: Act,
    owner: str | None,
    delete_missing: bool,
    registrar: Registrar | None,
) -> Plan[Registered]:
    mark = signature(registration, delete_missing=delete_missing)
    tables = None if registrar is None else registrar.tables
    attempt = Attempt(keys, registration, act, mark, owner, delete_missing, tables)
    if not attempt.is_news:
        renewed = yield from _renew(keys, registration, mark, owner, registrar)
        if renewed is not None:
            return renewed
    if registrar is None or len(registration.body) <= SLICE_BYTES:
        return (yield from _carried_out(attempt))
    yield Enter(registrar.room)
    try:
        return (yield from _carried_out(attempt))
    finally:
        registrar.room.leave()


def _carried_out(attempt: Attempt) -> Plan[Registered]:
    keys, act, name = attempt.keys, attempt.act, attempt.registration.name
    reply = (yield from attempt.change()) if attempt.is_news else None
    if reply is not None:
        return _answered(reply[4], reply[5], event_id=reply[1])
    pauses = 0
    for _ in range(TRIES + PENDING_PAUSES):
        reply = yield from attempt.once()
        if attempt.owed:
            attempt.event_id = (yield from settle_owed(keys, act, only=attempt.owed)) or attempt.event_id
            attempt.owed.clear()
        if reply is None:
            continue
        match reply[0]:
            case "done":
                owed_id = yield from settle_owed(keys, act, only=reply[6:])
                return _answered(reply[4], reply[5], event_id=owed_id or reply[1] or attempt.event_id)
            case "refused":
                return Registered(order_table=_table(reply[2]), event_id=reply[1], refused=True)
            case "single":
                raise RegistrationRefused("register broker failed: a first registration with one topic only")
            case "full":
                raise InvalidField("brokerName", f"{name!r} has 1000 members already")
            case "pending":
                pauses += 1
                if pauses > PENDING_PAUSES:
                    break
                yield Pause(PENDING_PAUSE_S)
    raise BrokerBusy(f"another registration of broker {name!r} goes on")


def _renew(
    keys: Keys, r: Registration, mark: Signature, owner: str | None, registrar: Registrar | None
) -> Plan[Registered | None]:
    version = mark.version.text() if mark.version else ""
    item = ScriptItem(
        "renew",
        (keys.leases, keys.kv_namespaces, keys.kv(ORDER_TOPIC_CONFIG)),
        (keys.alive(r.member), keys.member(r.member), keys.broker(r.name)),
        (r.member, mark.content, version, owner or "", str(r.id)),
    )
    reply: Any = (yield item) if registrar is None else (yield from registrar.renewals.ask(item))
    if reply[0] != "renewed":
        return None
    return _answered(reply[2], reply[3], again=Again(item, reply) if version else None)


def _answered(
    master: list[str], order: list[str], *, event_id: str = "", again: Again | None = None
) -> Registered:
    return Registered(master[0] or None, master[1] or None, _table(order), event_id, again=again)


def _table(order: list[str]) -> dict[str, str] | None:
    """The order topics, None where there is no such KV namespace."""
    return pairs(order[1:]) if order[0] == "1" else None
