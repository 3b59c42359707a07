"""How members leave: UNREGISTER_BROKER (104), a lost connection, the end of a lease; and what a removal owes.

A removal is decided at once, in one script; what it leaves behind in the topic tables is hidden by the epoch rule
and cleaned up in slices, noted in `owed`, so that the job finishes what a dead process left.
"""

from collections.abc import Iterable

import msgspec

from registry.errors import BrokerBusy
from registry.keys import Keys, member_key
from registry.plans import Act, Batch, Plan, ScriptCall, as_json, call
from registry.queue_text import wiped
from registry.rewrite import rewrite_topics
from registry.tables import parts, scan

EXPIRE_MAX = 50
CLEAN_MAX = 250  # a script, of a topic and three commands or more each


class Removal(msgspec.Struct, frozen=True):
    """`event_id` is the last entry written, "" for none; `brokers` are the names that lost a member."""

    event_id: str
    brokers: tuple[str, ...] = ()


class Orphan(msgspec.Struct, frozen=True):
    """A member whose last connection ended: when (Redis clock, ms) and the end of its lease then."""

    cluster: str
    address: str
    closed_ms: int
    lease_ms: int


def unregister(
    keys: Keys, cluster: str, address: str, name: str, broker_id: str | None, act: Act
) -> Plan[Removal]:
    """Take an address out of a broker name, by address; `broker_id` only tells whose place it claims."""
    member = member_key(cluster, address)
    request = {"act": act, "cause": "unregistered", "member": member, "name": name, "id": broker_id or ""}
    return (yield from _remove(keys, member, request, act))


def let_go(keys: Keys, cluster: str, address: str, owner: str) -> Plan[Orphan | None]:
    """A connection that a member registered over has ended; the member, if that was its last one."""
    member = member_key(cluster, address)
    reply = yield ScriptCall(
        "let_go", (keys.events_meta, keys.member(member), keys.workers, keys.leases), (owner, member)
    )
    return Orphan(cluster, address, int(reply[0]), int(float(reply[1]))) if reply else None


def lose(keys: Keys, orphan: Orphan, cause: str, act: Act) -> Plan[Removal]:
    """Remove an orphan unless it has been heard of since: `lost` after a probe, `closed` without one."""
    member = member_key(orphan.cluster, orphan.address)
    request = {
        "act": act,
        "cause": cause,
        "member": member,
        "lease": orphan.lease_ms,
        "closed_ms": orphan.closed_ms,
    }
    return (yield from _remove(keys, member, request, act))


def expire(keys: Keys, act: Act) -> Plan[int]:
    """Record every lapse that is due, 50 a script; how many there were."""
    total = 0
    while True:
        reply = yield ScriptCall(
            "expire", (keys.events_meta, keys.leases), (as_json({"act": act, "limit": EXPIRE_MAX}),)
        )
        total += int(reply[1])
        yield from settle_owed(keys, act, only=reply[2:])
        if int(reply[1]) < EXPIRE_MAX:
            return total


def settle_owed(keys: Keys, act: Act, *, only: Iterable[str] | None = None) -> Plan[str]:
    """Do the slices that removals owe, of some broker names or all; the last entry written, or "".

    A note is crossed off only if it still is what was read, for a broker may go again meanwhile."""
    names = None if only is None else set(only)
    if names is not None and not names:
        return ""
    owed: dict[str, str] = yield call("HGETALL", keys.owed)
    event_id = ""
    for note in sorted(owed):
        kind, _, name = note.partition(":")
        if names is not None and name not in names:
            continue
        if kind == "acting":
            written = yield from _clear_write(keys, name, owed[note].partition(":")[0], act)
            done = written is not None
            event_id = written or event_id
        else:
            done = yield from _clean(keys, name)
        if done:
            yield ScriptCall("settled", (keys.owed,), (note, owed[note]))
    return event_id


def _remove(keys: Keys, member: str, request: dict[str, object], act: Act) -> Plan[Removal]:
    reply = yield ScriptCall("unregister", (keys.events_meta, keys.member(member)), (as_json(request),))
    brokers = tuple(reply[1:])
    owed_id = yield from settle_owed(keys, act, only=brokers)
    return Removal(owed_id or reply[0], brokers)


def _clear_write(keys: Keys, name: str, epoch: str, act: Act) -> Plan[str | None]:
    """Clear the write bit of a group without master; the last entry written, None when it has to be tried again."""
    try:
        done = yield from rewrite_topics(keys, name, act, "acting", wiped, epoch=epoch, without_master=True)
    except BrokerBusy:
        return None
    return done.event_id


def _clean(keys: Keys, name: str) -> Plan[bool]:
    """Delete what no epoch needs any more; False while a chunked registration may still come to an end."""
    epochs = yield Batch((call("HGET", keys.broker(name), "epoch"), call("GET", keys.pending(name))))
    for table, reverse in (("topics", keys.topics_of(name)), ("mappings", keys.mappings_of(name))):
        stored = yield from scan(reverse)
        stale = {topic: text for topic, text in stored.items() if text.partition(",")[0] not in epochs}
        for part in parts(stale, CLEAN_MAX):
            flat = [text for item in part for text in item]
            yield ScriptCall(
                "clean",
                (keys.events_meta, keys.broker(name), keys.pending(name)),
                (name, table, len(part), *flat),
            )
    return epochs[1] is None
