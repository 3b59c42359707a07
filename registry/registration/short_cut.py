"""The short cut of an unchanged registration: recognised by its signature, it only renews the lease.

Any number of one moment share one call of `lua/renew_registration.lua`.
"""

from typing import Any

from registry.keys import ORDER_TOPIC_CONFIG
from registry.plans import NOTHING, Plan, ScriptItem
from registry.registration.order_tables import exceptions_with_order_table
from registry.registration.renewals import Renewal, Renewals
from registry.registration.request import RegisterContext, Registered


def renew(context: RegisterContext, renewals: Renewals | None) -> Plan[Registered | None]:
    """Renew the lease of a member whose registration is unchanged; None when that is not certain."""
    keys, r, signature = context.keys, context.registration, context.signature
    member = context.member
    version = signature.version.text() if signature.version else ""
    item = ScriptItem(
        "renew_registration",
        (keys.leases, keys.kv_namespaces, keys.kv(ORDER_TOPIC_CONFIG)),
        (keys.member(member), keys.broker(r.name)),
        (member, signature.content, version, context.owner or "", str(r.id)),
        exceptions_with_order_table,
        expected=NOTHING,
    )
    reply: Any = (yield item) if renewals is None else (yield from renewals.ask(item))
    match reply:
        case ["renewed", timeout_ms, master, order_table]:
            renewal = Renewal.of(item, reply, (timeout_ms, *master)) if version else None
            return Registered.of(master, order_table, renewal=renewal)
    return None
