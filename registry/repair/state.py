"""What walks over the tables repaired, and which process walks."""

import re
from typing import Final

import msgspec

from registry.clock import TIME, unix_ms
from registry.damage.key_types import delete_wrong
from registry.events.checkpoint import last_round, request_round
from registry.keys import Keys
from registry.plans import Batch, Origin, Plan, ScriptCall, call

CLAIM_MS: Final = 30_000
ROUND_EVERY_MS: Final = 60_000
"""Damage that goes on must not make checkpoint rounds follow one another."""


NUMBER: Final = re.compile(r"[0-9]{1,15}", re.ASCII)  # others are damage


class Repaired(msgspec.Struct, frozen=True):
    """How many rows were repaired: of brokers and the sets that list them, of members and their leases, of routes and
    the list of topics, of static topics; and how many keys of a wrong type were deleted."""

    brokers: int = 0
    members: int = 0
    topics: int = 0
    mappings: int = 0
    keys: int = 0

    @property
    def total(self) -> int:
        return self.brokers + self.members + self.topics + self.mappings + self.keys

    def __add__(self, other: "Repaired") -> "Repaired":
        ours, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return Repaired(*(one + more for one, more in zip(ours, theirs, strict=True)))


class RepairState(msgspec.Struct, frozen=True):
    """All repairs so far, and the last whole walk: its end (Unix ms of the Redis clock) and how long it took; and when
    a walk last noted that it goes on. None before the first one, and the first repair."""

    repaired: Repaired
    repaired_ms: int | None
    walked_ms: int | None
    walk_took_ms: int | None
    walking_ms: int | None


def claim(keys: Keys, walker: str, origin: Origin) -> Plan[bool]:
    """Claim the walk for half a minute, or renew the claim; False while another process walks."""
    if (yield call("SET", keys.repair_walker, walker, "NX", "PX", CLAIM_MS)):
        return True
    if (yield from delete_wrong(keys, {keys.repair_walker: "string"}, origin)):
        return (yield from claim(keys, walker, origin))
    if (yield call("GET", keys.repair_walker)) != walker:
        yield call("PEXPIRE", keys.repair_walker, CLAIM_MS, "LT")  # no claim lasts longer
        return False
    return bool((yield call("PEXPIRE", keys.repair_walker, CLAIM_MS)))


def release(keys: Keys, walker: str) -> Plan[None]:
    """Release the claim of a process that ends, for another one to claim at once."""
    yield ScriptCall("release_claim", (keys.repair_walker,), (walker,))


def note_progress(keys: Keys) -> Plan[None]:
    """Note that a walk goes on: of a large namespace it takes minutes."""
    yield call("HSET", keys.repair, "walking_ms", unix_ms((yield TIME)))


def record(keys: Keys, repaired: Repaired, began_ms: int, *, counted_keys: int) -> Plan[None]:
    """Note a whole walk and what it repaired; of the keys, lua/delete_wrong_type.lua has counted some."""
    now_ms = unix_ms((yield TIME))
    notes: list[str | int] = ["walked_ms", now_ms, "walk_took_ms", now_ms - began_ms]
    if repaired.total:
        notes += ["repaired_ms", now_ms]
    found = msgspec.structs.asdict(repaired)
    found["keys"] -= counted_keys
    stored: dict[str, str] = yield call("HGETALL", keys.repair)
    wrong = [name for name in found if name in stored and not NUMBER.fullmatch(stored[name])]
    if wrong:
        yield call("HDEL", keys.repair, *wrong)
    counts = (call("HINCRBY", keys.repair, table, rows) for table, rows in found.items() if rows)
    yield Batch((call("HSET", keys.repair, *notes), *counts))


def request_needed_round(keys: Keys, origin: Origin) -> Plan[None]:
    """Request the checkpoint round that readers need since a repair, if there was no round just now."""
    if not (yield call("HGET", keys.repair, "round")):
        return
    last, now_ms = (yield from last_round(keys)), unix_ms((yield TIME))
    if last is None or now_ms - last.begun.ms >= ROUND_EVERY_MS:
        yield call("HDEL", keys.repair, "round")
        yield from request_round(keys, "request", origin)


def state(keys: Keys) -> Plan[RepairState]:
    """Return what walks did so far."""
    fields: dict[str, str] = yield call("HGETALL", keys.repair)

    def number(name: str) -> int | None:
        text = fields.get(name, "")
        return int(text) if NUMBER.fullmatch(text) else None

    repaired = Repaired(*(number(table) or 0 for table in Repaired.__struct_fields__))
    times = (number(name) for name in ("repaired_ms", "walked_ms", "walk_took_ms", "walking_ms"))
    return RepairState(repaired, *times)
