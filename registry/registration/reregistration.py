"""A registration that differs from the member's last one in its data version and some topics only.

`lua/reregister_topics.lua` alone writes it, when the process caches the last one; most changes of a cluster are such.
"""

from registry.plans import ScriptCall, as_json
from registry.registration.cached_tables import CachedTable
from registry.registration.diff import TableDiff
from registry.registration.request import RegisterContext
from registry.slices import arguments


def can_reregister(context: RegisterContext, last: CachedTable) -> bool:
    """Return whether only the data version and topics differ from the master's last registration."""
    signature = context.signature
    return (
        context.registration.id == 0
        and last.signature.identity == signature.identity
        and last.signature.version is not None
        and signature.version is not None
        and last.signature.version != signature.version
    )


def reregister_call(context: RegisterContext, last: CachedTable, diff: TableDiff) -> ScriptCall:
    """Return the call that writes at most one slice and its entry."""
    keys, r, signature = context.keys, context.registration, context.signature
    assert signature.version is not None
    assert last.signature.version is not None
    counts, values = arguments(diff.slices[0] if diff.slices else None, diff.slices)
    request = {
        "origin": context.origin,
        "name": r.name,
        "cluster": r.cluster,
        "addr": r.address,
        "member": r.member,
        "epoch": last.decision.epoch,
        "gen": last.decision.generation,
        "sig": signature.content,
        "dv": signature.version.text(),
        "was_sig": last.signature.content,
        "was_dv": last.signature.version.text(),
        "owner": context.owner or "",
        "counts": counts,
    }
    if diff.growth.is_any:
        request |= {"limits": context.limits, "adds": diff.growth}
    names = (keys.events_meta, keys.broker(r.name), keys.member(r.member), keys.alive(r.member), keys.leases)
    return ScriptCall("reregister_topics", names, (as_json(request), *values))
