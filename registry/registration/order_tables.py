"""The order table in the replies of a call: scripts that take many registrations return it once."""

from typing import Any, Final

REGISTERED: Final = frozenset(("done", "renewed"))


def with_order_table(returned: list[Any]) -> list[Any]:
    """Return the replies of the items; those of registered members end with the order table, which came first."""
    order_table, *replies = returned
    return [[*reply, order_table] if reply[0] in REGISTERED else reply for reply in replies]
