"""Checkpoint rounds: all tables told anew on the stream, slice by slice between ordinary entries (docs/events.md).

A round is asked for by a field of `events:asked` and carried out by whoever calls `carry_on`: how far it has come is
kept in the store, so a round that a dead process left goes on with the next call, and two callers do no harm.
"""

from collections.abc import Collection
from typing import Literal

import msgspec

from registry.keys import Keys
from registry.plans import Act, Batch, Plan, ScriptCall, as_json, call

SLICE = 500  # topics a script restates: below 1 ms
Cause = Literal["start", "gap", "request"]


class Carried(msgspec.Struct, frozen=True):
    """What a call of `carry_on` did: scripts that told something, and rounds that came to their end."""

    slices: int = 0
    ended: int = 0


class LastRound(msgspec.Struct, frozen=True):
    """The round under way, or the last one; `begun` is the id of its first entry."""

    cause: str
    begun: str


def ask(keys: Keys, cause: Cause, act: Act) -> Plan[str]:
    """Have a round begun soon, behind the entry whose id is returned ("" while the stream has none).

    Who asks again before it begins gets the same round; one that is under way already does not count."""
    newest, (seconds, micros) = yield Batch(
        (call("XREVRANGE", keys.events, "+", "-", "COUNT", 1), call("TIME"))
    )
    asked = {"at_ms": int(seconds) * 1000 + int(micros) // 1000, "actor": act.actor}
    yield call("HSET", keys.events_asked, cause, as_json(asked))
    return newest[0][0] if newest else ""


def carry_on(keys: Keys, act: Act, *, slices: int, hidden: Collection[str] = ()) -> Plan[Carried]:
    """Tell the next slices of the round that is asked for or under way, at most so many.

    Values of `hidden` settings are told as `***`."""
    request = as_json({"act": act, "slice": SLICE, "hidden": dict.fromkeys(sorted(hidden), 1)})
    names = (keys.events_meta, keys.events_round, keys.events_round_left, keys.events_asked)
    ended = 0
    for told in range(slices):
        _, state = yield ScriptCall("restate", names, (request,))
        if state == "idle":
            return Carried(told, ended)
        ended += state == "ended"
    return Carried(slices, ended)


def last_round(keys: Keys) -> Plan[LastRound | None]:
    """None before the first one."""
    cause, begun = yield call("HMGET", keys.events_round, "cause", "begun")
    return LastRound(cause, begun) if begun else None
