"""Checks whether a history keeps the promises, and names those that are broken, with the operations around."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations
from typing import Literal, TypeAlias

import msgspec

from faults.history.model import Model, Outage, Place, windows
from faults.history.operations import History, Operation, Register
from faults.history.search import ABSENT, NO_WRITE, Impossible, TooWide, impossible

Rule: TypeAlias = Literal[
    "only what was written",
    "own writes",
    "never back",
    "not long behind",
    "leases end",
    "leases last",
    "one order",
]
EXPLANATIONS: dict[Rule, str] = {
    "only what was written": "it saw what was never written",
    "own writes": "it did not see what had been acknowledged over the same connection",
    "never back": "it saw what was before, after the same connection had seen what came later",
    "not long behind": "it saw what had been replaced or removed too long ago",
    "leases end": "what it saw had a lease that was over",
    "leases last": "it missed what no request had removed and whose lease was not over",
    "one order": "no order of the writes explains it",
}
WITHOUT: dict[Rule, dict[str, object]] = {
    "own writes": {"own_writes": False},
    "never back": {"monotonic": False},
    "leases end": {"leases_end": False},
    "leases last": {"leases_last": False},
    "not long behind": {"behind_s": 1e6},
}
"""The rules that can be left out, and the model without each: broken are the fewest without which all is well."""
SHOWN = 14  # operations of a complaint
AROUND_S = 2.0
NEEDLESS_S = 0.001


class Complaint(msgspec.Struct, frozen=True):
    """The first read of one place that no order explains, and the operations around it."""

    place: Register
    rules: tuple[Rule, ...]
    operation: Operation
    possible: tuple[str, ...]
    around: tuple[Operation, ...]
    origin_s: float

    def __str__(self) -> str:
        lines = [
            f"{self.place}: {', '.join(self.rules)}. {_line(self.operation, self.origin_s)}",
            f"  {'; '.join(EXPLANATIONS[rule] for rule in self.rules)}",
            f"  just before, it could have been: {'; '.join(self.possible)}",
            "  what happened around it:",
        ]
        return "\n".join(lines + [f"    {_line(operation, self.origin_s)}" for operation in self.around])


class Report(msgspec.Struct, frozen=True):
    """`operations` and `places` were judged, except `undecided` places: too many writes overlap there."""

    operations: int
    places: int
    complaints: tuple[Complaint, ...]
    undecided: tuple[Register, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.complaints and not self.undecided

    def __str__(self) -> str:
        verdict = "as promised" if self.ok else "not as promised" if self.complaints else "undecided"
        head = f"{self.operations} operations on {self.places} places: {verdict}"
        return "\n".join(
            (head, *map(str, self.complaints), *(f"{name}: undecided" for name in self.undecided))
        )


def judge(history: History, model: Model | None = None, outages: Sequence[Outage] = ()) -> Report:
    """Return the report on a history, with one complaint at most for each place."""
    model = model or Model()
    origin_s = min((operation.began_s for operation in history.operations), default=0.0)
    complaints, undecided = [], []
    places = history.by_place()
    for name, operations in places.items():
        place = windows(operations, model, outages)
        try:
            contradiction = impossible(place.writes, place.reads)
        except TooWide:
            undecided.append(name)
            continue
        if contradiction is not None:
            complaints.append(_complaint(name, operations, place, contradiction, model, outages, origin_s))
    return Report(len(history.operations), len(places), tuple(complaints), tuple(undecided))


def furthest_behind_s(history: History, model: Model | None = None, outages: Sequence[Outage] = ()) -> float:
    """Return the least `behind_s` with which the history keeps the promises, to 1 ms; with the model's it must."""
    model = model or Model()
    furthest_s = 0.0
    for operations in history.by_place().values():

        def explained(behind_s: float, operations: Sequence[Operation] = operations) -> bool:
            place = windows(operations, msgspec.structs.replace(model, behind_s=behind_s), outages)
            return impossible(place.writes, place.reads) is None

        if not explained(furthest_s):
            low, high = furthest_s, model.behind_s
            while high - low > NEEDLESS_S:
                middle = (low + high) / 2
                low, high = (low, middle) if explained(middle) else (middle, high)
            furthest_s = high
    return furthest_s


def _complaint(
    name: Register,
    operations: Sequence[Operation],
    place: Place,
    contradiction: Impossible,
    model: Model,
    outages: Sequence[Outage],
    origin_s: float,
) -> Complaint:
    operation = place.read[contradiction.read]
    return Complaint(
        name,
        _broken(operations, place, contradiction, model, outages),
        operation,
        tuple(_state(value, holder, place, origin_s) for value, holder in contradiction.possible),
        _around(operations, operation, contradiction.at),
        origin_s,
    )


def _broken(
    operations: Sequence[Operation],
    place: Place,
    contradiction: Impossible,
    model: Model,
    outages: Sequence[Outage],
) -> tuple[Rule, ...]:
    if not place.reads[contradiction.read].accepts:
        return ("only what was written",)
    own = place.reads[contradiction.read].after != NO_WRITE
    candidates = [rule for rule in WITHOUT if own or rule != "own writes"]
    until = [operation for operation in operations if operation.began_s <= contradiction.at]
    for count in range(1, len(candidates) + 1):
        for rules in combinations(candidates, count):
            changes = {name: value for rule in rules for name, value in WITHOUT[rule].items()}
            relaxed = windows(until, msgspec.structs.replace(model, **changes), outages)
            with suppress(TooWide):
                later = impossible(relaxed.writes, relaxed.reads)
                if later is None or later.at > contradiction.at:
                    return rules
    return ("one order",)


def _around(operations: Sequence[Operation], operation: Operation, at: float) -> tuple[Operation, ...]:
    """Return the most recent writes, and the last of each kind of equal reads."""
    begun = [
        other for other in operations if other.began_s <= at and other.ended_s >= operation.began_s - AROUND_S
    ]
    last: dict[tuple[object, ...], Operation] = {}
    for other in begun:
        if other.kind == "lookup" and other is not operation:
            last[other.connection, other.question, other.value] = other
    writes = [other for other in operations if other.began_s <= at and other.kind != "lookup"]
    reads = [other for other in begun if other is last.get((other.connection, other.question, other.value))]
    shown = writes[-SHOWN // 2 :] + reads[-SHOWN // 2 :]
    return tuple(sorted(shown, key=lambda other: other.began_s))


def _state(value: int, holder: int, place: Place, origin_s: float) -> str:
    if value == ABSENT:
        return "nothing"
    writer = place.written[holder]
    by = (
        "as the store came back"
        if writer is None
        else f"written by {writer.client} at {_at(writer, origin_s)}"
    )
    return f"{place.values[value]} ({by})"


def _at(operation: Operation, origin_s: float) -> str:
    return f"{operation.began_s - origin_s:.3f}..{operation.ended_s - origin_s:.3f} s"


def _line(operation: Operation, origin_s: float) -> str:
    head = f"{_at(operation, origin_s)} {operation.client}, connection {operation.connection}"
    if operation.kind == "lookup":
        return f"{head}: asked for {operation.question}, saw {operation.value or 'nothing'}"
    done = "" if operation.acknowledged else ", no answer"
    lease = f", lease {operation.lease_s:g} s" if operation.kind == "register" else ""
    return f"{head}: {operation.kind} {operation.value}{lease}{done}"
