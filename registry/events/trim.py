"""Trimming of the event stream: operators' entries are copied to `audit` first, then old entries are deleted.

Entries go that are older than the retention and that no consumer holds back; the newest ten thousand stay. Only the
cap on the stream's memory overrides both: consumers that lack entries then get a checkpoint round.

Entries and reports that cannot be read are skipped and returned for the log: what one hand wrote must not keep the
stream from being trimmed.
"""

import sys
from collections.abc import Collection

import msgspec

from registry.clock import now_ms
from registry.events.checkpoint import last_round, request_round
from registry.events.consumers import Consumer, read_reports
from registry.events.entry import FIRST, Event, EventId, EventKind
from registry.keys import Keys
from registry.plans import Batch, Origin, Plan, as_json, call

KEPT = 10_000
SLICE = 1_000
FIRST_READ = 10  # of which the first with a number is the stream's first
READ = 100  # an entry may have 64 KB
AUDIT_MAX = 100_000
TRIMS = 16  # tries of one run: the second takes a 16th of the entries at least, the next two of them …
AUDIT_PART = 4  # of the memory that the event stream may have, the copies have so much
ROUND_EVERY_MS = 600_000  # at most one round of cause `gap` in this time
COPIED_VALUE_MAX = 1024  # bytes of a KV value in a copy: a peer may set any number of long ones
AUDITOR = "audit"  # our own field of `events:consumers`
UNREAD_NAMED = 10  # ids of unread entries that a run returns


class Trimmed(msgspec.Struct, frozen=True):
    """Entries copied to `audit`, entries trimmed because all consumers have them, entries trimmed by the cap.

    `copies_trimmed` counts copies that there was no room for any more. `lagging` counts consumers that hold entries
    back, lack some, and have no checkpoint round ahead of them. `unread_entries` are ids of entries without a number,
    the first ones of this run; `unread_consumers` are consumers whose report cannot be read, some of them, and why."""

    audited: int = 0
    passed: int = 0
    capped: int = 0
    copies_trimmed: int = 0
    lagging: int = 0
    unread_entries: tuple[str, ...] = ()
    unread_consumers: dict[str, str] = {}


def trim(keys: Keys, origin: Origin, *, retention_ms: int, max_bytes: int) -> Plan[Trimmed]:
    """Copy to `audit`, then trim, then request a round if a consumer needs one. Times are of the Redis clock."""
    now = yield from now_ms()
    copies = int((yield call("XLEN", keys.audit)))
    audited, unread_entries = yield from _audit(keys, now, max_bytes // AUDIT_PART)
    consumers, unread_consumers = yield from read_reports(keys)
    holders = [consumer for consumer in consumers.values() if consumer.retains(now)]
    oldest = min([EventId(max(now - retention_ms, 0)), *(consumer.position for consumer in holders)])
    passed = yield from _trim(keys.events, ("MINID", "~", str(oldest)), down_to=KEPT)
    capped = yield from trim_to_memory(keys, max_bytes)
    copies_trimmed = max(copies + audited - int((yield call("XLEN", keys.audit))), 0)
    lagging = yield from _count_lagging(keys, holders, now, origin)
    return Trimmed(audited, passed, capped, copies_trimmed, lagging, unread_entries, unread_consumers)


def trim_to_memory(keys: Keys, max_bytes: int) -> Plan[int]:
    """Trim the oldest entries beyond so much memory, whatever holds them back, and copies beyond a part of that.

    Return how many entries of `events` that were. Scripts that append trim beyond 5/4 of what is noted here."""
    capped = yield from _trim_to(keys.events, max_bytes)
    yield call("HSET", keys.events_meta, "max_bytes", max_bytes)
    yield from _trim_to(keys.audit, max_bytes // AUDIT_PART)
    return capped


def _trim_to(stream: str, max_bytes: int) -> Plan[int]:
    """Trim the oldest entries, by the average first and then by more: they may be smaller than the others."""
    gone = 0
    for tried in range(TRIMS):
        used = yield call("MEMORY", "USAGE", stream, "SAMPLES", 0)  # samples are of the oldest
        if used is None or int(used) <= max_bytes:
            break
        length = int((yield call("XLEN", stream)))
        target = min(length * max_bytes // int(used), length - length * tried // TRIMS)
        gone += yield from _trim(stream, ("MAXLEN", "~", str(target)), down_to=target)
    return gone


def _audit(keys: Keys, now: int, max_bytes: int) -> Plan[tuple[int, tuple[str, ...]]]:
    """Copy what is new; return how many entries were copied, and the first of those that have no number.

    The copies are trimmed meanwhile, so that a flood of them does not take much more than `max_bytes`."""
    newest = yield call("XREVRANGE", keys.audit, "+", "-", "COUNT", 1)
    copied_to = EventId.parse(newest[0][0]) if newest else FIRST
    auditor = yield from _auditor(keys, copied_to)
    count, copied_bytes, unread = 0, 0, list[str]()
    while True:
        reply = yield call("XRANGE", keys.events, f"({auditor.position}", "+", "COUNT", READ)
        for event in (Event.of(*entry) for entry in reply):
            if event.is_audited and event.id > copied_to:
                flat = [text for field in _copied(event).items() for text in field]
                yield call("XADD", keys.audit, "MAXLEN", "~", AUDIT_MAX, str(event.id), *flat)
                count += 1
                copied_bytes += sum(map(len, flat))
                if copied_bytes > max_bytes // AUDIT_PART:
                    yield from _trim_to(keys.audit, max_bytes)
                    copied_bytes = 0
            auditor.id = str(event.id)
            if not event.is_numbered:
                unread.append(auditor.id)
            else:
                auditor.seq = event.sequence
        if len(reply) < READ:
            break
    auditor.at_ms = now
    yield call("HSET", keys.events_consumers, AUDITOR, as_json(auditor))
    return count, tuple(unread[:UNREAD_NAMED])


def _copied(event: Event) -> dict[str, str]:
    """Return the fields of a copy: long KV values by their sizes, as an entry has those over 64 KB."""
    fields = dict(event.fields)
    if event.kind == EventKind.KV_CHANGED:
        for name in ("before", "after"):
            size = len(fields.get(name, "").encode(errors="replace"))
            if size > COPIED_VALUE_MAX:
                del fields[name]
                fields[f"{name}_bytes"] = str(size)
    return fields


def _auditor(keys: Keys, copied_to: EventId) -> Plan[Consumer]:
    """Return our own report; one that cannot be read is made again from what was copied."""
    stored = yield call("HGET", keys.events_consumers, AUDITOR)
    try:
        return Consumer.parse(stored) if stored else Consumer()
    except ValueError:
        return Consumer(str(copied_to))


def _trim(stream: str, what: tuple[str, str, str], *, down_to: int) -> Plan[int]:
    length = yield call("XLEN", stream)
    excess, gone = int(length) - down_to, 0
    while gone < excess:
        count = int((yield call("XTRIM", stream, *what, "LIMIT", min(SLICE, excess - gone))))
        if count == 0:
            break
        gone += count
    return gone


class _Start(msgspec.Struct, frozen=True):
    """The first entry of the stream that has a number, or the place of the next one when there is none."""

    id: EventId
    inc_ms: int
    seq: int

    def lacks(self, consumer: Consumer) -> bool:
        """Return whether entries behind the consumer's own, or of an incarnation since, are gone."""
        next_seq = consumer.seq + 1 if consumer.position.ms >= self.inc_ms else 1
        return consumer.position < self.id and next_seq < self.seq


def _count_lagging(keys: Keys, holders: Collection[Consumer], now: int, origin: Origin) -> Plan[int]:
    """Return how many consumers need a round, and request it unless one was written for them just before."""
    if not holders:
        return 0
    start = yield from _start(keys)
    last = yield from last_round(keys)
    begun = last.begun if last is not None else FIRST
    lagging = 0
    for consumer in holders:
        if begun < start.id or begun <= consumer.position:  # else a whole round is ahead of the consumer
            lagging += start.lacks(consumer) or not (yield from _happened(keys, consumer, start))
    recently = last is not None and last.cause == "gap" and now - begun.ms < ROUND_EVERY_MS
    if lagging and not recently:
        yield from request_round(keys, "gap", origin)
    return lagging


def _start(keys: Keys) -> Plan[_Start]:
    entries, (inc, seq) = yield Batch(
        (
            call("XRANGE", keys.events, "-", "+", "COUNT", FIRST_READ),
            call("HMGET", keys.events_meta, "inc", "seq"),
        )
    )
    for event in (Event.of(*entry) for entry in entries):
        if event.is_numbered:
            return _Start(event.id, int(event.incarnation or 0), event.sequence)
    return _Start(EventId(sys.maxsize), int(inc or 0), int(seq or 0) + 1)


def _happened(keys: Keys, consumer: Consumer, start: _Start) -> Plan[bool]:
    """Whether the consumer's own entry is there, if it should be: a failover may have lost it."""
    if consumer.position < start.id:
        return True
    entries = yield call("XRANGE", keys.events, str(consumer.position), str(consumer.position))
    return bool(entries) and entries[0][1].get("seq") == str(consumer.seq)
