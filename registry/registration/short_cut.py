"""The short cut of an unchanged registration: recognised by its signature, it only renews the lease.

Any number of one moment share one call of `lua/renew_registration.lua`.
"""

from typing import Any

from msgspec.structs import replace

from registry.keys import ORDER_TOPIC_CONFIG
from registry.plans import Plan, ScriptItem
from registry.registration.decision import Done
from registry.registration.order_tables import with_order_table
from registry.registration.registered import Registered
from registry.registration.renewals import Renewal, Renewals, good_for_s
from registry.registration.request import RegisterContext
from registry.registration.straight import of_its_kind


def renew(context: RegisterContext, renewals: Renewals | None) -> Plan[Registered | None]:
    """Renew the lease of a member whose registration is unchanged; None when that is not certain."""
    item = _item(context)
    reply: Any = (yield item) if renewals is None else (yield from renewals.ask(item))
    match reply:
        case ["renewed", timeout_ms, master, order_table]:
            return Registered.of(master, order_table, renewal=_renewal(context, item, reply, timeout_ms))
    return None


def renewal_of(context: RegisterContext, done: Done) -> Renewal | None:
    """Return how a registration that was just written is repeated."""
    timeout_ms = str(context.registration.timeout_ms)
    reply = ["renewed", timeout_ms, [*done.master], done.order_table]
    return _renewal(context, _item(context), reply, timeout_ms)


def renewal_after(before: Renewal, context: RegisterContext) -> Renewal:
    """Return the same for a member of which only topics and their data version changed."""
    return replace(before, item=_item(context), context=context)


def _item(context: RegisterContext) -> ScriptItem:
    keys, r, signature = context.keys, context.registration, context.signature
    member = context.member
    version = signature.version.text() if signature.version else ""
    return ScriptItem(
        "renew_registration",
        (keys.leases, keys.kv_namespaces, keys.kv(ORDER_TOPIC_CONFIG)),
        (keys.alive(member), keys.member(member), keys.broker(r.name)),
        (member, signature.content, version, context.owner or "", str(r.id)),
        with_order_table,
    )


def _renewal(context: RegisterContext, item: ScriptItem, reply: list[Any], timeout_ms: str) -> Renewal | None:
    if context.signature.version is None:
        return None
    return Renewal(item, reply, good_for_s(timeout_ms), of_its_kind(context))
