"""Removal of members: UNREGISTER_BROKER (104), disconnect, the end of a lease; and the clean-up after it.

One script removes a member. What stays in the topic tables is hidden by the epoch rule and deleted in slices. The hash
`owed` notes this pending clean-up, so that the job finishes what a dead process left.
"""

from collections.abc import Iterable

import msgspec

from registry.clock import TIME, unix_ms
from registry.damage.texts import is_text
from registry.errors import BrokerBusy
from registry.holder import Holder
from registry.keys import Keys, member_key
from registry.long_work.scan import batches_for_scripts, scan
from registry.ownership import UNGUARDED, Claim, Claimant, observable, refused
from registry.plans import Batch, Origin, Plan, ScriptCall, as_json, call
from registry.queue_data.queue_text import wiped
from registry.queue_data.rewrite import rewrite_topics
from rocketmq_remoting.typed import converted

EXPIRE_MAX = 50
CLEAN_MAX = 250  # a script, of a topic and three commands or more each


class Removal(msgspec.Struct, frozen=True, array_like=True):
    """`event_id` is the last entry written, "" for none; `brokers` are the names that lost a member.

    `more`: the member had so many places that another script has to go on."""

    event_id: str
    brokers: tuple[str, ...] = ()
    more: bool = False


class Disconnected(msgspec.Struct, frozen=True):
    """A member whose last connection closed: when, and the end of its lease then (Unix ms of the Redis clock)."""

    cluster: str
    address: str
    closed_ms: int
    lease_ms: int


class _Expired(msgspec.Struct, frozen=True, array_like=True):
    """What lua/expire_members.lua replies: the last entry, how many lapses, the brokers that lost a member, and whether
    more may be due."""

    event_id: str
    count: int
    brokers: tuple[str, ...]
    more: bool


@observable
def unregister(
    keys: Keys,
    cluster: str,
    address: str,
    name: str,
    broker_id: str | None,
    origin: Origin,
    *,
    claimant: Claimant = UNGUARDED,
) -> Plan[Removal]:
    """Remove an address from a broker name; `broker_id` only says which id it claims to have. Raises NotOwner."""
    member = member_key(cluster, address)
    request = {
        "origin": origin,
        "cause": "unregistered",
        "member": member,
        "name": name,
        "id": broker_id or "",
    } | claimant.arguments()
    removed = yield from _remove(keys, member, request, origin)
    if isinstance(removed, Holder):
        claim = Claim(cluster, name, broker_id or "", address)
        raise (yield from refused(keys, claimant, origin, claim, removed))
    return removed


def release_owner(keys: Keys, cluster: str, address: str, owner: str) -> Plan[Disconnected | None]:
    """Release a closed connection that a member registered over; return the member if that was its last one."""
    member = member_key(cluster, address)
    reply = yield ScriptCall(
        "release_owner", (keys.events_meta, keys.member(member), keys.workers, keys.leases), (owner, member)
    )
    if not reply:
        return None
    closed_ms, lease_ms = reply
    return Disconnected(cluster, address, int(closed_ms), int(float(lease_ms)))


def remove_disconnected(keys: Keys, member: Disconnected, cause: str, origin: Origin) -> Plan[Removal]:
    """Remove a member unless its lease was renewed since; the cause is `lost` after a probe, `closed` without one."""
    key = member_key(member.cluster, member.address)
    request = {
        "origin": origin,
        "cause": cause,
        "member": key,
        "lease": member.lease_ms,
        "closed_ms": member.closed_ms,
    }
    removed = yield from _remove(keys, key, request, origin)
    return Removal("") if isinstance(removed, Holder) else removed


def remove_mirrored(keys: Keys, cluster: str, address: str, mirrored: str, origin: Origin) -> Plan[Removal]:
    """Remove a member that is mirrored from these name servers from all its places; any other one stays."""
    key = member_key(cluster, address)
    request = {"origin": origin, "cause": "mirror", "member": key, "mirrored": mirrored}
    removed = yield from _remove(keys, key, request, origin)
    return Removal("") if isinstance(removed, Holder) else removed


def expire(keys: Keys, origin: Origin) -> Plan[int]:
    """Record the lapses that are due, at most 50 a script; return how many."""
    total = 0
    while True:
        reply = yield ScriptCall(
            "expire_members",
            (keys.events_meta, keys.leases),
            (as_json({"origin": origin, "limit": EXPIRE_MAX}),),
        )
        expired = converted(reply, _Expired, strict=False)
        total += expired.count
        yield from run_deferred(keys, origin, only=expired.brokers)
        if not expired.more:
            return total


def any_lease_over(keys: Keys) -> Plan[bool]:
    """Return whether `expire` may have something to record: the lease that ends first is over, held or not."""
    time, first = yield Batch((TIME, call("ZRANGE", keys.leases, 0, 0, "WITHSCORES")))
    return any(end <= unix_ms(time) for _, end in first)


def run_deferred(keys: Keys, origin: Origin, *, only: Iterable[str] | None = None) -> Plan[str]:
    """Do the pending clean-up of some broker names, or all; return the last entry written, "" for none.

    A note is deleted only if it still is what was read: the broker may have left again meanwhile."""
    names = None if only is None else set(only)
    if names is not None and not names:
        return ""
    notes: dict[str, str] = yield call("HGETALL", keys.deferred)
    event_id = ""
    for note in sorted(notes):
        kind, _, name = note.partition(":")
        if not is_text(note) or (names is not None and name not in names):  # what is no text is damage
            continue
        if kind == "acting":
            written = yield from _clear_write(keys, name, notes[note].partition(":")[0], origin)
            done = written is not None
            event_id = written or event_id
        else:
            done = yield from _clean(keys, name)
        if done:
            yield ScriptCall("clear_deferred", (keys.deferred,), (note, notes[note]))
    return event_id


def _remove(keys: Keys, member: str, request: dict[str, object], origin: Origin) -> Plan[Removal | Holder]:
    """Remove a member; return it if it is for its registrant to do so."""
    event_id, names = "", dict[str, None]()
    while True:
        reply = yield ScriptCall("unregister", (keys.events_meta, keys.member(member)), (as_json(request),))
        if reply[0] == "owned":
            return converted(reply[1], Holder, strict=False)
        removal = converted(reply, Removal, strict=False)
        names |= dict.fromkeys(removal.brokers)
        event_id = removal.event_id or event_id
        if not removal.more:
            deferred_id = yield from run_deferred(keys, origin, only=names)
            return Removal(deferred_id or event_id, tuple(names))


def _clear_write(keys: Keys, name: str, epoch: str, origin: Origin) -> Plan[str | None]:
    """Clear the write bit of a group without master; return the last entry written, None to try again later."""
    try:
        rewrite = yield from rewrite_topics(
            keys, name, origin, "acting", wiped, epoch=epoch, without_master=True
        )
    except BrokerBusy:
        return None
    return rewrite.event_id


def _clean(keys: Keys, name: str) -> Plan[bool]:
    """Delete the rows of past epochs; return False while a registration in several scripts is under way."""
    epochs = yield Batch((call("HGET", keys.broker(name), "epoch"), call("GET", keys.pending(name))))
    for table, reverse in (("topics", keys.topics_of(name)), ("mappings", keys.mappings_of(name))):
        stored = yield from scan(reverse)
        stale = {topic: text for topic, text in stored.items() if text.partition(",")[0] not in epochs}
        for batch in batches_for_scripts(stale, CLEAN_MAX):
            flat = [text for row in batch for text in row]
            yield ScriptCall(
                "sweep_topics",
                (keys.events_meta, keys.broker(name), keys.pending(name)),
                (name, table, len(batch), *flat),
            )
    return epochs[1] is None
