"""Entries `access_denied`: known callers that were refused, once a minute for each of them and what it asked for."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from registry.damage.key_types import Types, healed, types_of_lists
from registry.keys import Keys
from registry.plans import Batch, Origin, Plan, ScriptCall, as_json

__all__ = ["DeniedCalls", "report"]

AT_ONCE: Final = 100


class DeniedCalls(msgspec.Struct, frozen=True):
    """So many refused requests of an actor for an operation, none to ask whether others' are to be reported now;
    `of_class` is what it needed last, `peer` where it came from."""

    actor: str
    operation: str
    of_class: str
    peer: str
    count: int


def report(keys: Keys, calls: Sequence[DeniedCalls], origin: Origin) -> Plan[list[int]]:
    """Report refused requests; return for each in how many ms the store is to be asked again, 0 for never.

    Processes share the minute of an actor and operation, and the one count of what was refused within it."""
    waits: list[int] = []
    for start in range(0, len(calls), AT_ONCE):
        some = calls[start : start + AT_ONCE]
        waits += yield from healed(
            keys, origin, partial(_report, keys, some, origin.op), partial(_types, keys, some)
        )
    return waits


def _report(keys: Keys, calls: Sequence[DeniedCalls], op: str) -> Plan[list[int]]:
    waits: list[int] = yield Batch(tuple(_scripts(keys, calls, op)))
    return waits


def _scripts(keys: Keys, calls: Sequence[DeniedCalls], op: str) -> Iterator[ScriptCall]:
    for one in calls:
        request = {
            "origin": Origin(op, one.actor, one.peer),
            "operation": one.operation,
            "class": one.of_class,
            "count": one.count,
        }
        of_actor = keys.access_denied(one.actor, one.operation)
        yield ScriptCall("report_denial", (keys.events_meta, of_actor), (as_json(request),))


def _types(keys: Keys, calls: Sequence[DeniedCalls]) -> Types:
    return {
        **types_of_lists(keys),
        **{keys.access_denied(one.actor, one.operation): "string" for one in calls},
    }
