"""The stream of accepted heartbeats, off by default (`eventsHeartbeats`): which request renewed which lease."""

from typing import Final

from registry.keys import Keys, member_key
from registry.plans import Plan, ScriptItem

AT_ONCE: Final = 32
"""Heartbeats a script: each is as many entries as its member has names."""


def log_heartbeat(keys: Keys, cluster: str, address: str, code: int) -> Plan[None]:
    """Append an entry for each broker name under which (cluster, address) is registered.

    `code` is that of the request which renewed the lease: 103, 322 or 904."""
    member = keys.member(member_key(cluster, address))
    args = (cluster, address, int(code))
    yield ScriptItem("log_heartbeats", (keys.heartbeats,), (member,), args, most=AT_ONCE)
