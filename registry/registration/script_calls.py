"""The calls of the scripts that a registration is written by."""

from typing import Final

import msgspec
from msgspec.structs import replace

from registry.growth.limits import Limits
from registry.plans import Argument, Origin, ScriptCall, as_json
from registry.queue_data.slices import Slice, arguments
from registry.registration.decision import Claimed, Done
from registry.registration.diff import Growth
from registry.registration.request import RegisterContext
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody

CLAIM_MS: Final = 2000
"""How long a claim lasts; each slice that is staged renews it."""


class RegisterRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The JSON argument of `lua/register.lua`, described there."""

    origin: Origin
    name: str
    cluster: str
    id: str
    member: str
    dv: str
    state: int
    sig: str
    timeout: int
    limits: Limits
    registrant: str
    home: str
    last: int
    single: int
    ha: str | None = None
    zone: str | None = None
    acting: str | None = None
    filters: str | None = None
    owner: str | None = None
    host: str | None = None
    network: str | None = None
    guard: int = 0
    observes: int = 0
    exclusive: int = 0
    claims: int = 0
    mirrored: str | None = None
    dry: int = 0
    token: str = ""
    claim: str | None = None
    leftovers: int = 0
    applied: int = -1
    adds: Growth | None = None


class CompleteTable(msgspec.Struct, frozen=True):
    """The data version of a table that is written whole, and whether it is what the body says."""

    version: DataVersion
    applied: bool


def is_refused_alone(context: RegisterContext, body: RegisterBrokerBody) -> bool:
    """Return whether the body's only topic is refused in a first registration."""
    return len(body.topics) == 1 and not context.registration.single_topic


def register_request(
    context: RegisterContext, version: DataVersion, body: RegisterBrokerBody | None = None
) -> RegisterRequest:
    """Return a request that writes nothing yet; without `body`, nothing of filter servers or the number of topics.

    Raises LimitReached."""
    r = context.registration
    filters = None
    if body is not None and body.filter_servers is not None:
        filters = as_json(body.filter_servers).decode()
        context.limits.check_bytes("maxFilterServersBytes", "filter servers", filters)
    return RegisterRequest(
        origin=context.origin,
        name=r.name,
        cluster=r.cluster,
        id=str(r.id),
        member=context.member,
        dv=version.text(),
        state=version.state_version,
        sig=context.signature.content,
        timeout=r.timeout_ms,
        limits=context.limits,
        last=1,
        single=int(body is not None and is_refused_alone(context, body)),
        ha=r.ha,
        zone=r.zone,
        acting=None if r.acting is None else str(int(r.acting)),
        filters=filters,
        owner=context.owner,
        host=context.host,
        network=context.network,
        registrant=context.claimant.registrant,
        home=context.claimant.comes_from,
        guard=int(context.claimant.guard),
        observes=int(context.claimant.observes),
        exclusive=int(context.claimant.exclusive),
        claims=int(context.claimant.takes),
        mirrored=r.mirrored,
    )


def register_call(
    context: RegisterContext, request: RegisterRequest, values: tuple[Argument, ...] = ()
) -> ScriptCall:
    """Return the call of lua/register.lua."""
    keys, r = context.keys, context.registration
    return ScriptCall(
        "register",
        (keys.events_meta, keys.broker(r.name), keys.member(context.member), keys.pending(r.name)),
        (as_json(request), *values),
    )


def decide_call(context: RegisterContext, version: DataVersion) -> ScriptCall:
    """Return the call that decides and writes nothing."""
    return register_call(context, replace(register_request(context, version), dry=1))


def claim_call(context: RegisterContext, growth: Growth) -> ScriptCall:
    """Return the call that claims the broker name for a table that takes several scripts."""
    keys, name = context.keys, context.registration.name
    request = {
        "origin": context.origin,
        "name": name,
        "ttl_ms": CLAIM_MS,
        "limits": context.limits,
        "adds": growth,
        "network": context.network or "",
    }
    return ScriptCall("claim_epoch", (keys.events_meta, keys.pending(name)), (as_json(request),))


def stage_call(context: RegisterContext, claimed: Claimed, rows: Slice) -> ScriptCall:
    """Return the call that stores a slice under the claimed epoch, where no route shows it."""
    keys, name = context.keys, context.registration.name
    request = as_json({"name": name, "claim": claimed.epoch, "ttl_ms": CLAIM_MS})
    return ScriptCall("stage_slice", (keys.events_meta, keys.pending(name)), (request, *arguments(rows)))


def write_slice_call(
    context: RegisterContext, written: Done, rows: Slice, *, complete: CompleteTable | None
) -> ScriptCall:
    """Return the call that writes a further slice of a live broker; with the last one the table is `complete`."""
    keys, r = context.keys, context.registration
    request: dict[str, object] = {
        "origin": context.origin,
        "name": r.name,
        "epoch": written.epoch,
        "gen": written.generation,
        "cluster": r.cluster,
    }
    if complete is not None:
        request |= {
            "member": context.member,
            "id": str(r.id),
            "dv": complete.version.text(),
            "sig": context.signature.content,
            "applied": str(int(complete.applied)),
        }
    return ScriptCall(
        "write_slice",
        (keys.events_meta, keys.broker(r.name)),
        (as_json(request), *arguments(rows, (rows,))),
    )
