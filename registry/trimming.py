"""Keeping the stream of events short: what operators did is copied to `audit` first, then old entries go.

Entries go that are older than the retention and safe with every consumer that holds them back; the newest ten
thousand stay. Only the cap on the stream's memory overrides both.
"""

from collections.abc import Mapping

import msgspec

from registry.keys import Keys
from registry.plans import Plan, as_json, call

KEPT = 10_000
SLICE = 1_000
READ = 100  # an entry may have 64 KB
AUDIT_MAX = 100_000
SILENT_MS = 24 * 3600 * 1000  # a holder that said nothing for so long no longer counts
AUDITOR = "audit"  # the field of `events:consumers` that is ours
OPERATORS_KINDS = frozenset(
    {"drain_changed", "kv_changed", "settings_changed", "hold_changed", "conflict_seen"}
)
OPERATORS_CAUSES = frozenset({"wipe", "restore", "topic_register", "topic_delete", "evicted"})

Entry = tuple[str, dict[str, str]]


class Trimmed(msgspec.Struct, frozen=True):
    """How many entries were copied to `audit`, how many went because all are done with them, how many by the cap."""

    audited: int = 0
    passed: int = 0
    capped: int = 0


class Consumer(msgspec.Struct):
    """A field of `events:consumers`: all entries up to `id` are safe with it; `hold`: trimming waits for it."""

    id: str = "0-0"
    seq: int = 0
    at_ms: int = 0
    hold: bool | int = False


def trim(keys: Keys, *, retention_ms: int, max_bytes: int) -> Plan[Trimmed]:
    """Audit, then trim. Times are of the Redis clock."""
    seconds, micros = yield call("TIME")
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    audited = yield from _audit(keys, now_ms)
    floor = yield from _floor(keys, now_ms, retention_ms)
    passed = yield from _trim(keys, ("MINID", "~", floor), down_to=KEPT)
    capped = 0
    used = yield call("MEMORY", "USAGE", keys.events)
    if used is not None and int(used) > max_bytes:
        length = yield call("XLEN", keys.events)
        target = int(length) * max_bytes // int(used)
        capped = yield from _trim(keys, ("MAXLEN", "~", str(target)), down_to=target)
    return Trimmed(audited, passed, capped)


def is_operators(fields: Mapping[str, str]) -> bool:
    """Whether an entry tells of an operator's act."""
    return fields.get("kind") in OPERATORS_KINDS or fields.get("cause") in OPERATORS_CAUSES


def _audit(keys: Keys, now_ms: int) -> Plan[int]:
    known = yield call("HGET", keys.events_consumers, AUDITOR)
    position = msgspec.json.decode(known, type=Consumer) if known else Consumer()
    newest = yield call("XREVRANGE", keys.audit, "+", "-", "COUNT", 1)
    copied_to = _number(newest[0][0]) if newest else (0, 0)
    count = 0
    while True:
        entries: list[Entry] = yield call("XRANGE", keys.events, f"({position.id}", "+", "COUNT", READ)
        for event_id, fields in entries:
            if is_operators(fields) and _number(event_id) > copied_to:
                flat = [text for pair in fields.items() for text in pair]
                yield call("XADD", keys.audit, "MAXLEN", "~", AUDIT_MAX, event_id, *flat)
                count += 1
        if entries:
            position.id, position.seq = entries[-1][0], int(entries[-1][1].get("seq") or 0)
        if len(entries) < READ:
            break
    position.at_ms = now_ms
    yield call("HSET", keys.events_consumers, AUDITOR, as_json(position))
    return count


def _floor(keys: Keys, now_ms: int, retention_ms: int) -> Plan[str]:
    floor = (max(now_ms - retention_ms, 0), 0)
    for text in (yield call("HVALS", keys.events_consumers)):
        consumer = msgspec.json.decode(text, type=Consumer)
        if consumer.hold and now_ms - consumer.at_ms < SILENT_MS:
            floor = min(floor, _number(consumer.id))
    return f"{floor[0]}-{floor[1]}"


def _trim(keys: Keys, what: tuple[str, str, str], *, down_to: int) -> Plan[int]:
    length = yield call("XLEN", keys.events)
    excess, gone = int(length) - down_to, 0
    while gone < excess:
        count = int((yield call("XTRIM", keys.events, *what, "LIMIT", min(SLICE, excess - gone))))
        if count == 0:
            break
        gone += count
    return gone


def _number(event_id: str) -> tuple[int, int]:
    ms, _, number = event_id.partition("-")
    return int(ms), int(number or 0)
