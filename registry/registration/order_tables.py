"""The order table in the replies of a call: scripts that take many registrations return it once."""

from collections.abc import Sequence
from typing import Any, Final

from registry.plans import ScriptItem, exceptions

REGISTERED: Final = frozenset(("done", "renewed"))


def with_order_table(_: Sequence[ScriptItem], returned: list[Any]) -> list[Any]:
    """Return the replies of the items; those of registered members end with the order table, which came first."""
    order_table, *replies = returned
    return [_ending(reply, order_table) for reply in replies]


def exceptions_with_order_table(items: Sequence[ScriptItem], returned: list[Any]) -> list[Any]:
    """Return the replies as `registry.plans.exceptions` does, those of registered members with the order table, which
    came first. One that is expected is the same object if the order table is as before."""
    order_table, *others = returned
    others[1::2] = [_ending(reply, order_table) for reply in others[1::2]]
    replies, known = exceptions(items, others), order_table
    for i, reply in enumerate(replies):
        if reply[-1] is known or reply[0] not in REGISTERED:
            continue
        if reply[-1] == order_table:
            known = reply[-1]
        else:
            replies[i] = [*reply[:-1], order_table]
    return replies


def _ending(reply: list[Any], order_table: list[Any]) -> list[Any]:
    return [*reply, order_table] if reply[0] in REGISTERED else reply
