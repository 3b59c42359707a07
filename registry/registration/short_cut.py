"""The short cut of an unchanged registration: recognised by its signature, it only renews the lease.

Any number of one moment share one call of `lua/renew_registration.lua`.
"""

from typing import Any

from msgspec.structs import replace

from registry.keys import ORDER_TOPIC_CONFIG
from registry.plans import NOTHING, Plan, ScriptItem
from registry.registration.decision import Done
from registry.registration.order_tables import exceptions_with_order_table
from registry.registration.registered import Registered
from registry.registration.renewals import Renewal, Renewals
from registry.registration.request import RegisterContext
from registry.registration.straight import of_its_kind


def renew(context: RegisterContext, renewals: Renewals | None) -> Plan[Registered | None]:
    """Renew the lease of a member whose registration is unchanged; None when that is not certain."""
    item = _item(context)
    reply: Any = (yield item) if renewals is None else (yield from renewals.ask(item))
    match reply:
        case ["renewed", _, master, order_table]:
            return Registered.of(master, order_table, renewal=_renewal(context, item, reply))
    return None


def renewal_of(context: RegisterContext, done: Done) -> Renewal | None:
    """Return how a registration that was just written is repeated."""
    reply = ["renewed", str(context.registration.timeout_ms), [*done.master], done.order_table]
    return _renewal(context, _item(context), reply)


def renewal_after(before: Renewal, context: RegisterContext) -> Renewal:
    """Return the same for a member of which only topics and their data version changed."""
    return replace(before, item=replace(_item(context), expected=before.item.expected), context=context)


def _item(context: RegisterContext) -> ScriptItem:
    keys, r, signature = context.keys, context.registration, context.signature
    member = context.member
    version = signature.version.text() if signature.version else ""
    return ScriptItem(
        "renew_registration",
        (keys.leases, keys.kv_namespaces, keys.kv(ORDER_TOPIC_CONFIG)),
        (keys.member(member), keys.broker(r.name)),
        (member, signature.content, version, context.owner or "", str(r.id)),
        exceptions_with_order_table,
        expected=NOTHING,
    )


def _renewal(context: RegisterContext, item: ScriptItem, reply: list[Any]) -> Renewal | None:
    if context.signature.version is None:
        return None
    _, timeout_ms, master, _ = reply
    return Renewal.of(item, reply, (timeout_ms, *master), of_its_kind(context))
