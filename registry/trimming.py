"""Keeping the stream of events short: what operators did is copied to `audit` first, then old entries go.

Entries go that are older than the retention and safe with every consumer that holds them back; the newest ten
thousand stay. Only the cap on the stream's memory overrides both; whom it cost entries gets a checkpoint round instead.
"""

import sys
from collections.abc import Collection, Mapping

import msgspec

from registry.keys import Keys
from registry.plans import Act, Batch, Plan, as_json, call
from registry.rounds import ask, last_round

KEPT = 10_000
SLICE = 1_000
READ = 100  # an entry may have 64 KB
AUDIT_MAX = 100_000
SILENT_MS = 24 * 3600 * 1000  # a holder that said nothing for so long no longer counts
ROUND_EVERY_MS = 600_000  # who lacks entries again and again gets no more rounds than that
AUDITOR = "audit"  # the field of `events:consumers` that is ours
OPERATORS_KINDS = frozenset(
    {"drain_changed", "kv_changed", "settings_changed", "hold_changed", "conflict_seen"}
)
OPERATORS_CAUSES = frozenset({"wipe", "restore", "topic_register", "topic_delete", "evicted"})

Entry = tuple[str, dict[str, str]]
Position = tuple[int, int]


class Trimmed(msgspec.Struct, frozen=True):
    """How many entries were copied to `audit`, how many went because all are done with them, how many by the cap.

    `overtaken` are the consumers that hold entries back, but lack some, and have no checkpoint round ahead of them."""

    audited: int = 0
    passed: int = 0
    capped: int = 0
    overtaken: int = 0


class Consumer(msgspec.Struct):
    """A field of `events:consumers`: all entries up to `id` are safe with it; `hold`: trimming waits for it."""

    id: str = "0-0"
    seq: int = 0
    at_ms: int = 0
    hold: bool | int = False

    def holds(self, now_ms: int) -> bool:
        """Whether it still counts."""
        return bool(self.hold) and now_ms - self.at_ms < SILENT_MS


def trim(keys: Keys, act: Act, *, retention_ms: int, max_bytes: int) -> Plan[Trimmed]:
    """Audit, then trim, then ask for a round if a consumer needs one. Times are of the Redis clock."""
    seconds, micros = yield call("TIME")
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    audited = yield from _audit(keys, now_ms)
    holders = [one for one in (yield from _consumers(keys)) if one.holds(now_ms)]
    floor = _floor(holders, now_ms, retention_ms)
    passed = yield from _trim(keys, ("MINID", "~", floor), down_to=KEPT)
    capped = 0
    used = yield call("MEMORY", "USAGE", keys.events)
    if used is not None and int(used) > max_bytes:
        length = yield call("XLEN", keys.events)
        target = int(length) * max_bytes // int(used)
        capped = yield from _trim(keys, ("MAXLEN", "~", str(target)), down_to=target)
    overtaken = yield from _overtaken(keys, holders, now_ms, act)
    return Trimmed(audited, passed, capped, overtaken)


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


def _consumers(keys: Keys) -> Plan[list[Consumer]]:
    texts = yield call("HVALS", keys.events_consumers)
    return [msgspec.json.decode(text, type=Consumer) for text in texts]


def _floor(holders: Collection[Consumer], now_ms: int, retention_ms: int) -> str:
    floor = min([(max(now_ms - retention_ms, 0), 0), *(_number(one.id) for one in holders)])
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


class _Start(msgspec.Struct, frozen=True):
    """The first entry that is still there, or the place of the next one where none is."""

    id: Position
    inc_ms: int
    seq: int

    def lacks(self, one: Consumer) -> bool:
        """Whether entries behind the consumer's own, or of an incarnation since, are gone."""
        here = _number(one.id)
        next_seq = one.seq + 1 if here[0] >= self.inc_ms else 1
        return here < self.id and next_seq < self.seq


def _overtaken(keys: Keys, holders: Collection[Consumer], now_ms: int, act: Act) -> Plan[int]:
    """How many holders need a round; it is asked for, but for their sake not too often."""
    if not holders:
        return 0
    start = yield from _start(keys)
    last = yield from last_round(keys)
    begun = _number(last.begun) if last is not None else (0, 0)
    overtaken = 0
    for one in holders:
        if begun < start.id or begun <= _number(one.id):  # else there is a whole round ahead of it
            overtaken += start.lacks(one) or not (yield from _happened(keys, one, start))
    recently = last is not None and last.cause == "gap" and now_ms - begun[0] < ROUND_EVERY_MS
    if overtaken and not recently:
        yield from ask(keys, "gap", act)
    return overtaken


def _start(keys: Keys) -> Plan[_Start]:
    entries, (inc, seq) = yield Batch(
        (call("XRANGE", keys.events, "-", "+", "COUNT", 1), call("HMGET", keys.events_meta, "inc", "seq"))
    )
    if not entries:
        return _Start((sys.maxsize, 0), int(inc or 0), int(seq or 0) + 1)
    event_id, fields = entries[0]
    return _Start(_number(event_id), int(fields.get("inc") or 0), int(fields.get("seq") or 0))


def _happened(keys: Keys, one: Consumer, start: _Start) -> Plan[bool]:
    """Whether the consumer's own entry is there, if it should be: a failover may have lost it."""
    if _number(one.id) < start.id:
        return True
    entries: list[Entry] = yield call("XRANGE", keys.events, one.id, one.id)
    return bool(entries) and entries[0][1].get("seq") == str(one.seq)


def _number(event_id: str) -> Position:
    ms, _, number = event_id.partition("-")
    return int(ms), int(number or 0)
