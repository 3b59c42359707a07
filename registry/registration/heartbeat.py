"""Heartbeats of registered brokers: BROKER_HEARTBEAT (904) and QUERY_DATA_VERSION (322)."""

from typing import Final

import msgspec
from msgspec.structs import replace

from registry.events.heartbeat_log import log_heartbeat
from registry.keys import Keys, member_key
from registry.plans import Origin, Plan, ScriptCall, ScriptItem, as_json
from registry.registration.renewals import Renewal, good_for_s
from registry.removal import run_deferred
from rocketmq_remoting.data_version import DataVersion

NO_VERSION: Final = DataVersion(timestamp=-1)


class Heartbeat(msgspec.Struct, frozen=True):
    """The stored data version, None for an unknown member, and the last entry written, "" for none.

    `renewal` is set when only the lease was renewed: the script item that answers the member's next heartbeat."""

    version: DataVersion | None
    event_id: str = ""
    renewal: Renewal | None = None


def renew_lease(
    keys: Keys, cluster: str, address: str, origin: Origin, *, event_code: int | None = None
) -> Plan[Heartbeat]:
    """Renew the lease of (cluster, address) if it is registered; a heartbeat registers no member.

    `event_code` is the request code under which an accepted one is logged (`registry.events.heartbeat_log`), None
    while none is."""
    accepted = yield from _renewed(keys, cluster, address, origin)
    if event_code is None or accepted.version is None:
        return accepted
    yield from log_heartbeat(keys, cluster, address, event_code)
    return replace(accepted, renewal=None)  # the next one is logged too


def _renewed(keys: Keys, cluster: str, address: str, origin: Origin) -> Plan[Heartbeat]:
    member = member_key(cluster, address)
    item = ScriptItem("heartbeat", (keys.leases,), (keys.alive(member), keys.member(member)), (member,))
    reply = yield item
    match reply:
        case ["renewed", timeout_ms, version]:
            return Heartbeat(_version(version), renewal=Renewal(item, reply, good_for_s(timeout_ms)))
        case ["lapsed"]:
            return (yield from _reinstate(keys, member, origin))
    return Heartbeat(None)


def _reinstate(keys: Keys, member: str, origin: Origin) -> Plan[Heartbeat]:
    """Reinstate a member whose lapse is not recorded yet."""
    reply = yield ScriptCall(
        "reinstate_member",
        (keys.events_meta, keys.member(member)),
        (as_json({"origin": origin, "member": member}),),
    )
    match reply:
        case ["renewed", version, event_id, deferred]:
            deferred_id = yield from run_deferred(keys, origin, only=deferred)
            return Heartbeat(_version(version), deferred_id or event_id)
    return Heartbeat(None)


def _version(text: str) -> DataVersion:
    """Return the stored data version; of damage, and while a registration is incomplete, one that no broker sends."""
    try:
        return DataVersion.from_text(text) if text else NO_VERSION
    except ValueError:
        return NO_VERSION
