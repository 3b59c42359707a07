"""Heartbeats of registered brokers: BROKER_HEARTBEAT (904) and QUERY_DATA_VERSION (322)."""

from typing import Final

import msgspec
from msgspec.structs import replace

from registry.errors import NotOwner
from registry.keys import Keys, member_key
from registry.members import stored_version
from registry.ownership import UNGUARDED, Claim, Claimant, observable, refused
from registry.plans import NOTHING, Origin, Plan, ScriptCall, ScriptItem, as_json, exceptions
from registry.registration.renewals import Renewal
from registry.removal import run_deferred
from rocketmq_remoting.data_version import DataVersion

NO_VERSION: Final = DataVersion(timestamp=-1)
"""In place of a damaged one, and while a registration is incomplete: no broker sends it."""
LOGGED_AT_ONCE: Final = 32
"""Heartbeats a script: each is as many entries as its member has names."""


class Heartbeat(msgspec.Struct, frozen=True):
    """The stored data version, None for an unknown member, and the last entry written, "" for none.

    `renewal` is set when only the lease was renewed: the script item that answers the member's next heartbeat."""

    version: DataVersion | None
    event_id: str = ""
    renewal: Renewal | None = None


@observable
def renew_lease(
    keys: Keys,
    cluster: str,
    address: str,
    origin: Origin,
    *,
    event_code: int | None = None,
    claimant: Claimant = UNGUARDED,
) -> Plan[Heartbeat]:
    """Renew the lease of (cluster, address) if it is registered; a heartbeat registers no member.

    `event_code` is the request code under which an accepted one is logged (`log_heartbeat`), None
    while none is. Raises NotOwner."""
    accepted = yield from _renewed(keys, cluster, address, origin, claimant)
    if event_code is None or accepted.version is None:
        return accepted
    yield from log_heartbeat(keys, cluster, address, event_code)
    return replace(accepted, renewal=None)  # the next one is logged too


def log_heartbeat(keys: Keys, cluster: str, address: str, code: int) -> Plan[None]:
    """Append an entry to `heartbeats` for each broker name under which (cluster, address) is registered.

    Asked for by eventsHeartbeats. `code` is that of the request which renewed the lease: 103, 322 or 904."""
    member = keys.member(member_key(cluster, address))
    args = (cluster, address, int(code))
    yield ScriptItem("log_heartbeats", (keys.heartbeats,), (member,), args, most=LOGGED_AT_ONCE)


def _renewed(keys: Keys, cluster: str, address: str, origin: Origin, claimant: Claimant) -> Plan[Heartbeat]:
    member = member_key(cluster, address)
    item = _item(keys, member, claimant)
    reply = yield item
    match reply:
        case ["renewed", _, version, *of_principal]:
            may_repeat = claimant.proved or not of_principal
            renewal = Renewal.of(item, reply, reply[1:]) if may_repeat else None
            return Heartbeat(stored_version(version) or NO_VERSION, renewal=renewal)
        case ["lapsed"]:
            return (yield from _reinstate(keys, cluster, address, origin, claimant))
        case ["owned", name, broker_id]:
            raise (yield from _refused(keys, Claim(cluster, name, broker_id, address), origin, claimant))
    return Heartbeat(None)


def _item(keys: Keys, member: str, claimant: Claimant) -> ScriptItem:
    """Return the item that renews the lease; only with the guard it looks at the registrant."""
    name = "guarded_heartbeat" if claimant.guard else "heartbeat"
    args = (member, claimant.registrant) if claimant.guard else (member,)
    return ScriptItem(name, (keys.leases,), (keys.member(member),), args, exceptions, expected=NOTHING)


def _reinstate(keys: Keys, cluster: str, address: str, origin: Origin, claimant: Claimant) -> Plan[Heartbeat]:
    """Reinstate a member whose lapse is not recorded yet."""
    member = member_key(cluster, address)
    request = {"origin": origin, "member": member} | claimant.arguments()
    reply = yield ScriptCall("reinstate_member", (keys.events_meta, keys.member(member)), (as_json(request),))
    match reply:
        case ["renewed", version, event_id, deferred]:
            deferred_id = yield from run_deferred(keys, origin, only=deferred)
            return Heartbeat(stored_version(version) or NO_VERSION, deferred_id or event_id)
        case ["owned", name, broker_id]:
            raise (yield from _refused(keys, Claim(cluster, name, broker_id, address), origin, claimant))
    return Heartbeat(None)


def _refused(keys: Keys, claim: Claim, origin: Origin, claimant: Claimant) -> Plan[NotOwner]:
    return (yield from refused(keys, claimant, origin, claim, (claim.cluster, claim.address)))
