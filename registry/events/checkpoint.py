"""Checkpoint rounds: all tables are written to the stream, slice by slice between ordinary entries (docs/events.md).

A round is requested by a field of `events:asked` and carried out by calls of `checkpoint`. Its state is in the store:
a round that a dead process began goes on with the next call, and two callers at once do no harm.
"""

from typing import Literal

import msgspec

from registry.clock import TIME, unix_ms
from registry.events.entry import EventId
from registry.keys import Keys
from registry.options.catalogue import SECRETS
from registry.plans import Batch, Origin, Plan, ScriptCall, as_json, call

SLICE = 500  # topics a script writes to the stream: below 1 ms
Cause = Literal["start", "gap", "request"]


class Progress(msgspec.Struct, frozen=True):
    """What a call of `checkpoint` did: scripts that wrote a slice, and rounds that ended."""

    slices: int = 0
    ended: int = 0


class LastRound(msgspec.Struct, frozen=True):
    """The round under way, or the last one; `begun` is the id of its first entry."""

    cause: str
    begun: EventId


def request_round(keys: Keys, cause: Cause, origin: Origin) -> Plan[str]:
    """Have a round begin soon; return the id of the entry that it comes behind, "" while the stream has none.

    Requests of one cause before the round begins have one round; a round that is under way does not count."""
    newest, time = yield Batch((call("XREVRANGE", keys.events, "+", "-", "COUNT", 1), TIME))
    yield call("HSET", keys.events_asked, cause, as_json({"at_ms": unix_ms(time), "actor": origin.actor}))
    return newest[0][0] if newest else ""


def checkpoint(keys: Keys, origin: Origin, *, slices: int) -> Plan[Progress]:
    """Write the next slices, at most so many, of the round that is requested or under way.

    Secret settings are written as `***`."""
    request = as_json({"origin": origin, "slice": SLICE, "hidden": dict.fromkeys(sorted(SECRETS), 1)})
    names = (keys.events_meta, keys.events_round, keys.events_round_left, keys.events_asked)
    ended = 0
    for written in range(slices):
        _, state = yield ScriptCall("checkpoint", names, (request,))
        if state == "idle":
            return Progress(written, ended)
        ended += state == "ended"
    return Progress(slices, ended)


def last_round(keys: Keys) -> Plan[LastRound | None]:
    """Return the round under way or the last one; None before the first."""
    cause, begun = yield call("HMGET", keys.events_round, "cause", "begun")
    return LastRound(cause, EventId.parse(begun)) if begun else None
