"""Leases of workers, and their tick: it notes that the store takes writes and finds leases that have ended."""

import re
from collections.abc import Collection
from typing import Final

import msgspec

from registry.clock import LATE_MS, whole_ms
from registry.expiry.holds import HoldRule
from registry.keys import Keys
from registry.plans import Batch, Origin, Plan, ScriptCall, as_json, call

PLACE: Final = re.compile(r"slot:[^:]*:(.*)", re.DOTALL)  # a field that is none is damage
WORKER_LEASE_MS = 10_000
HORIZON_MS = 1_500
OVERDUE_MOST = 1_000  # of one tick
SILENT_MOST = 100
SERVICE_IDLE_MS = 10_000  # without a tick for so long, the service starts again (needWaitForService)


class Tick(msgspec.Struct, frozen=True):
    """All times are Unix ms of the Redis clock.

    `overdue` are members whose lease, held or not, is over and not yet recorded, with its end, OVERDUE_MOST of them;
    `next_end_ms` is the first end of a lease or drain within the horizon, None for none; `started_ms` when the service
    began; `back_ms` by how much the clock went back since the last tick of any worker, 0 if it did not."""

    now_ms: int
    started_ms: int
    next_end_ms: int | None
    overdue: dict[str, int]
    event_id: str = ""
    back_ms: int = 0


def tick(
    keys: Keys,
    worker: str,
    origin: Origin,
    rule: HoldRule | None = None,
    *,
    follows: bool = True,
    behind_ms: int = 0,
) -> Plan[Tick]:
    """Renew a worker's lease and return overdue members; scripts hold mass expiries by `rule` from then on.

    `follows` is whether the worker follows the stream now: readiness asks for when one last did; `behind_ms` is
    by how much what it has applied of the stream is behind the end."""
    request: dict[str, object] = {
        "origin": origin,
        "worker": worker,
        "lease": WORKER_LEASE_MS,
        "horizon": HORIZON_MS,
        "most": OVERDUE_MOST,
        "idle": SERVICE_IDLE_MS,
        "follows": follows,
        "behind": behind_ms,
    }
    if rule is not None:
        request["rule"] = rule.text()
    now, started, soonest, overdue, event_id, back = yield ScriptCall(
        "tick", (keys.events_meta, keys.leases, keys.workers), (as_json(request),)
    )
    ends = {member: whole_ms(float(end)) for member, end in zip(overdue[::2], overdue[1::2], strict=True)}
    return Tick(
        int(now), int(started), whole_ms(float(soonest)) if soonest else None, ends, event_id, int(back)
    )


def end_lease(keys: Keys, worker: str) -> Plan[None]:
    """End the lease of a worker that has closed its connections, so that it is not taken for a silent one."""
    yield call("ZREM", keys.workers, worker)


def silent_workers(keys: Keys, now_ms: int) -> Plan[dict[str, int]]:
    """Return the workers without a tick for LATE_MS that did not end their lease, SILENT_MOST of them, and when (Unix
    ms) each ticked last. The next tick of another worker forgets those whose lease ended over a minute ago."""
    late_ms = now_ms - LATE_MS + WORKER_LEASE_MS
    names = yield call("ZRANGEBYSCORE", keys.workers, "-inf", f"({late_ms}", "LIMIT", 0, SILENT_MOST)
    ends = (yield call("ZMSCORE", keys.workers, *names)) if names else ()
    return {
        name: whole_ms(float(end)) - WORKER_LEASE_MS
        for name, end in zip(names, ends, strict=True)
        if end is not None
    }


def names_of_members(keys: Keys, members: Collection[str]) -> Plan[set[str]]:
    """Return the broker names that these members, living or not, are registered under."""
    tables = yield Batch(tuple(call("HKEYS", keys.member(member)) for member in members))
    places = (PLACE.fullmatch(field) for fields in tables for field in fields)
    return {place[1] for place in places if place}


def is_member(keys: Keys, member: str) -> Plan[bool]:
    """Whether a member is registered under this key, its lease over or not."""
    return bool((yield call("EXISTS", keys.member(member))))
