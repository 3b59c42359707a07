"""Beats of a broker that is known: BROKER_HEARTBEAT (904) and QUERY_DATA_VERSION (322)."""

import msgspec
from msgspec.structs import replace

from registry.heartbeats import heard
from registry.keys import Keys, member_key
from registry.plans import Act, Plan, ScriptCall, ScriptItem, as_json
from registry.removal import settle_owed
from registry.renewals import Again
from remoting.data_version import DataVersion


class Beat(msgspec.Struct, frozen=True):
    """What a beat found: the stored data version, None for an unknown member; the entry it wrote, if any.

    `again` is set for a beat that only renewed a lease: how the next one of this member is had, whatever asks for
    it, without a plan."""

    version: DataVersion | None
    event_id: str = ""
    again: Again | None = None


def beat(keys: Keys, cluster: str, address: str, act: Act, *, told_as: int | None = None) -> Plan[Beat]:
    """Renew the lease of (cluster, address) if it is registered; a beat never registers anybody.

    `told_as` is the request code under which an accepted one is kept (`registry.heartbeats`), None while they are not.
    """
    found = yield from _beaten(keys, cluster, address, act)
    if told_as is None or found.version is None:
        return found
    yield from heard(keys, cluster, address, told_as)
    return replace(found, again=None)  # the next one is kept too


def _beaten(keys: Keys, cluster: str, address: str, act: Act) -> Plan[Beat]:
    member = member_key(cluster, address)
    item = ScriptItem("beat", (keys.leases,), (keys.alive(member), keys.member(member)), (member,))
    reply = yield item
    if reply[0] == "renewed":
        return Beat(_version(reply[2]), again=Again(item, reply))
    if reply[0] == "unknown":
        return Beat(None)
    revived = yield ScriptCall(
        "revive", (keys.events_meta, keys.member(member)), (as_json({"act": act, "member": member}),)
    )
    if revived[0] == "unknown":
        return Beat(None)
    owed_id = yield from settle_owed(keys, act, only=revived[3:])
    return Beat(_version(revived[1]), owed_id or revived[2])


def _version(text: str) -> DataVersion:
    """A member whose registration is not complete yet has no data version: none that a broker could send."""
    return DataVersion.from_text(text) if text else DataVersion(timestamp=-1)
