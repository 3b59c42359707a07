"""A worker's tick: it is alive, leases can be renewed, and these have run out."""

from collections.abc import Collection

import msgspec

from registry.holds import HoldRule
from registry.keys import Keys
from registry.plans import Act, Batch, Plan, ScriptCall, as_json, call

WORKER_LEASE_MS = 10_000
HORIZON_MS = 1_500
SERVICE_IDLE_MS = 10_000  # no worker ticked for so long: the service starts anew (needWaitForService)


class Tick(msgspec.Struct, frozen=True):
    """All times are Unix ms of the Redis clock.

    `overdue` are members whose lease, held or not, is over and not yet recorded, with its end; `next_end_ms` is the
    first end of a lease or drain within the horizon, None for none; `started_ms` when the service began."""

    now_ms: int
    started_ms: int
    next_end_ms: int | None
    overdue: dict[str, int]
    event_id: str = ""


def tick(keys: Keys, worker: str, act: Act, rule: HoldRule | None = None) -> Plan[Tick]:
    """Beat for a worker and look at the leases; from then on scripts hold mass expiries by `rule`."""
    request: dict[str, object] = {
        "act": act,
        "worker": worker,
        "lease": WORKER_LEASE_MS,
        "horizon": HORIZON_MS,
        "idle": SERVICE_IDLE_MS,
    }
    if rule is not None:
        request["rule"] = rule.text()
    now, started, soonest, overdue, event_id = yield ScriptCall(
        "tick", (keys.events_meta, keys.leases, keys.workers), (as_json(request),)
    )
    ends = {member: int(float(end)) for member, end in zip(overdue[::2], overdue[1::2], strict=True)}
    return Tick(int(now), int(started), int(soonest) if soonest else None, ends, event_id)


def names_of_members(keys: Keys, members: Collection[str]) -> Plan[set[str]]:
    """The broker names that these members, living or not, are registered under; none of one that is gone."""
    tables = yield Batch(tuple(call("HKEYS", keys.member(member)) for member in members))
    return {field.split(":", 2)[2] for fields in tables for field in fields if field.startswith("slot:")}


def is_member(keys: Keys, member: str) -> Plan[bool]:
    """Whether somebody is registered under this member key, its lease run out or not."""
    return bool((yield call("EXISTS", keys.member(member))))
