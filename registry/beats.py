"""Beats of a broker that is known: BROKER_HEARTBEAT (904) and QUERY_DATA_VERSION (322)."""

import msgspec

from registry.keys import ORDER_TOPIC_CONFIG, Keys, member_key
from registry.plans import Act, Plan, ScriptCall, ScriptItem, as_json
from registry.removal import settle_owed
from registry.renewals import Renewals, Renewed, renew
from remoting.data_version import DataVersion


class Beat(msgspec.Struct, frozen=True):
    """What a beat found: the stored data version, None for an unknown member; the entry it wrote, if any.

    `until` is set when the lease had been renewed a moment ago: the answer to the same beat until then."""

    version: DataVersion | None
    event_id: str = ""
    until: float = 0.0


def beat(keys: Keys, cluster: str, address: str, act: Act, renewals: Renewals | None = None) -> Plan[Beat]:
    """Renew the lease of (cluster, address) if it is registered; a beat never registers anybody."""
    member = member_key(cluster, address)
    renewed = yield from renew(renewal(keys, member), renewals)
    if isinstance(renewed, Renewed):
        return Beat(_version(renewed.version), until=renewed.until)
    if renewed == "unknown":
        return Beat(None)
    revived = yield ScriptCall(
        "revive", (keys.events_meta, keys.member(member)), (as_json({"act": act, "member": member}),)
    )
    if revived[0] == "unknown":
        return Beat(None)
    owed_id = yield from settle_owed(keys, act, only=revived[3:])
    return Beat(_version(revived[1]), owed_id or revived[2])


def renewal(
    keys: Keys,
    member: str,
    name: str = "",
    signature: str = "",
    version: str = "",
    owner: str = "",
    broker_id: str = "",
) -> ScriptItem:
    """What `lua/renew.lua` is asked for one member; without a signature it is a plain beat."""
    return ScriptItem(
        "renew",
        (keys.leases, keys.kv_namespaces, keys.kv(ORDER_TOPIC_CONFIG)),
        (keys.alive(member), keys.member(member), keys.broker(name)),
        (member, signature, version, owner, broker_id),
    )


def _version(text: str) -> DataVersion:
    """A member whose registration is not complete yet has no data version: none that a broker could send."""
    return DataVersion.from_text(text) if text else DataVersion(timestamp=-1)
