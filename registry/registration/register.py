"""Registration of a broker (103), decided as RocketMQ 5.x RouteInfoManager.registerBroker decides it.

An unchanged registration is recognised by its signature and costs one short script (`short_cut`); any other is a
`RegisterOperation` (`operation`), repeated while other writers come in between.
"""

from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from registry.damage.key_types import Types, healed, types_of_brokers, types_of_lists, types_of_members
from registry.errors import BrokerBusy, LimitReached, NotOwner, OwnRegistration, RegistrationRefused
from registry.growth.limits import BYTES_OF_A_CHARACTER, DEFAULT_LIMITS, Limits
from registry.keys import Keys, member_key
from registry.ownership import UNGUARDED, Claim, Claimant, conflicting, observable, refused
from registry.plans import Acquire, Origin, Pause, Plan
from registry.registration.cache import RegistrationCache
from registry.registration.decision import (
    Again,
    ClaimLost,
    Conflict,
    Done,
    Full,
    Own,
    Owned,
    Pending,
    Refused,
    SingleTopic,
)
from registry.registration.heartbeat import log_heartbeat, renew_lease
from registry.registration.member_table import MemberTable
from registry.registration.operation import RegisterOperation
from registry.registration.registered import Registered
from registry.registration.request import RegisterContext, Registration, signature
from registry.registration.short_cut import renew, renewal_of
from registry.removal import run_deferred
from rocketmq_remoting.json_table import BLOCK_BYTES

__all__ = ["Registered", "Registration", "register"]

PENDING_PAUSE_S = 0.05
PENDING_PAUSES = 20
TRIES = 20


@observable
def register(
    keys: Keys,
    registration: Registration,
    origin: Origin,
    *,
    owner: str | None = None,
    host: str | None = None,
    delete_missing: bool = False,
    registration_cache: RegistrationCache | None = None,
    event_code: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    claimant: Claimant = UNGUARDED,
) -> Plan[Registered]:
    """Register a broker, or renew its lease when nothing changed.

    `owner` is the connection it came over, `<worker>/<connection>`, and `host` where its peer came from;
    `delete_missing` is the option deleteTopicWithBrokerRegistration;
    `registration_cache` is that of a process which does this all the time;
    `event_code` is the request code under which an accepted registration is logged (`heartbeat.log_heartbeat`), None
    while none is; `claimant` is the caller.
    Raises BodyError, RegistrationRefused, BrokerBusy, LimitReached, NotOwner, IdentityConflict, and OwnRegistration
    of a mirrored one.
    """
    signed = signature(registration, delete_missing=delete_missing, claimant=claimant)
    member = registration.member
    context = RegisterContext(
        keys, registration, member, origin, signed, owner, host, delete_missing, limits, claimant
    )
    try:
        registered = yield from healed(
            keys, origin, lambda: _register(context, registration_cache), partial(_types, keys, registration)
        )
    except (LimitReached, BrokerBusy):  # it may have been registered long ago, and lives
        with suppress(NotOwner):
            yield from renew_lease(
                keys, registration.cluster, registration.address, origin, claimant=claimant
            )
        raise
    if event_code is None or registered.refused:
        return registered
    yield from log_heartbeat(keys, registration.cluster, registration.address, event_code)
    return replace(registered, renewal=None)  # the next one is logged too


def _types(keys: Keys, registration: Registration) -> Types:
    member = member_key(registration.cluster, registration.address)
    return {
        **types_of_lists(keys),
        **types_of_brokers(keys, (registration.name,)),
        **types_of_members(keys, (member,)),
    }


def _check_lengths(registration: Registration, limits: Limits) -> None:
    """Raise LimitReached for a name or an address that is too long.

    The names of nearly all are so short together that none needs a look: to measure each took 1 % of a registration."""
    r = registration
    characters = len(r.cluster) + len(r.name) + len(r.zone or "") + len(r.address) + len(r.ha or "")
    if characters * BYTES_OF_A_CHARACTER <= min(limits.max_name_bytes, limits.max_address_bytes):
        return
    for field, name in (("clusterName", r.cluster), ("brokerName", r.name), ("zone", r.zone)):
        limits.check_bytes("maxNameBytes", field, name or "")
    for field, address in (("brokerAddr", r.address), ("haServerAddr", r.ha)):
        limits.check_bytes("maxAddressBytes", field, address or "")


def _register(context: RegisterContext, cache: RegistrationCache | None) -> Plan[Registered]:
    _check_lengths(context.registration, context.limits)
    table = MemberTable(context, None if cache is None else cache.tables)
    if not table.differs_from_last:
        renewed = yield from renew(context, None if cache is None else cache.renewals)
        if renewed is not None:
            return renewed
    operation = RegisterOperation(context, table)
    if cache is None or len(context.registration.body) <= BLOCK_BYTES:
        return (yield from _run(operation))
    yield Acquire(cache.limiter)
    try:
        return (yield from _run(operation))
    finally:
        cache.limiter.release()


def _run(operation: RegisterOperation) -> Plan[Registered]:
    """Carry out an operation, again when the state changed meanwhile, and do the clean-up that it leaves."""
    context = operation.context
    keys, origin, name = context.keys, context.origin, context.registration.name
    done = yield from operation.try_reregister()
    if done is not None:
        return Registered.of(
            done.master,
            done.order_table,
            event_id=done.event_id,
            outcome=done.outcome,
            renewal=renewal_of(context, done),
        )
    event_id, pauses = "", 0
    for _ in range(TRIES + PENDING_PAUSES):
        end = yield from operation.try_once()
        if isinstance(end, Done | Again):
            deferred_id = yield from run_deferred(keys, origin, only=end.deferred)
            event_id = deferred_id or end.event_id or event_id
        match end:
            case Done(master=master, order_table=order_table):
                renewal = renewal_of(context, end)
                return Registered.of(
                    master, order_table, event_id=event_id, outcome=end.outcome, renewal=renewal
                )
            case Refused(refusal_id, order_table):
                return Registered.of(("", ""), order_table, event_id=refusal_id, outcome="conflict")
            case Owned(holder):
                raise (yield from refused(keys, context.claimant, origin, _claim(context), holder))
            case Own(cluster, address, mirrored):
                raise OwnRegistration(name, cluster, address, mirrored)
            case Conflict(cause, holder):
                raise (yield from conflicting(keys, context.claimant, origin, _claim(context), cause, holder))
            case SingleTopic():
                raise RegistrationRefused("register broker failed: a first registration with one topic only")
            case Full(option, what):
                raise context.limits.reached(
                    option, f"broker {name!r} at {context.registration.address}", what
                )
            case Pending():
                pauses += 1
                if pauses > PENDING_PAUSES:
                    break
                yield Pause(PENDING_PAUSE_S)
            case Again() | ClaimLost():
                pass
    raise BrokerBusy(f"another registration of broker {name!r} goes on")


def _claim(context: RegisterContext) -> Claim:
    r = context.registration
    return Claim(r.cluster, r.name, str(r.id), r.address)
