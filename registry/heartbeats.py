"""The stream of accepted beats, which is off by default: whatever renewed a lease, by which request."""

from registry.keys import Keys, member_key
from registry.plans import Plan, ScriptItem


def heard(keys: Keys, cluster: str, address: str, code: int) -> Plan[None]:
    """A beat of (cluster, address) was accepted: an entry for each broker name that it stands under.

    `code` is the request's: 103, 322 or 904."""
    member = keys.member(member_key(cluster, address))
    yield ScriptItem("heard", (keys.heartbeats,), (member,), (cluster, address, int(code)))
