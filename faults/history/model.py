"""The promises of reads and writes (docs/consistency.md), as windows in which each operation takes effect."""

import math
from collections.abc import Sequence

import msgspec

from faults.history.operations import CLUSTERS, Operation, Value
from faults.history.search import ABSENT, NO_WRITE, Read, Write

CLOCK_S = 0.005
"""Leases are kept in whole milliseconds of the Redis clock, and operations are timed by the clients'."""
RENEWAL_FRACTION = 0.002
"""A lease that was renewed within a thousandth of its length is not renewed again; twice that, to be safe."""


class Outage(msgspec.Struct, frozen=True):
    """The store could not be reached, or not by all, from `start_s` to `end_s` (`time.monotonic`).

    `converges_s` after its end workers follow it again: 1 s, but 30 s where it came back empty, as cached routes are
    served for so long. `loses_s` is how much of what was acknowledged before the start it may have lost: a second or
    so in a failover; `math.inf` is all that ever was."""

    start_s: float
    end_s: float
    converges_s: float = 1.0
    loses_s: float = 0.0

    def touches(self, began_s: float, ended_s: float, *, after_s: float = 0.0) -> bool:
        """Return whether the outage overlaps that time, or ended no longer than `after_s` before."""
        return self.start_s <= ended_s and began_s <= self.end_s + after_s


class Model(msgspec.Struct, frozen=True):
    """How long (s) a worker may be behind, a lapse be served, an unanswered request take effect after it was given
    up, and an outage keep leases (registry: a hold); and which rules are judged by."""

    behind_s: float = 1.0
    late_s: float = 10.0
    hold_s: float = 60.0
    own_writes: bool = True
    monotonic: bool = True
    leases_end: bool = True
    leases_last: bool = True


class Place(msgspec.Struct, frozen=True):
    """The operations of one place as the search takes them; `written` and `read` are where they come from.

    A write without an operation is what a lossy outage may have done."""

    writes: tuple[Write, ...]
    reads: tuple[Read, ...]
    written: tuple[Operation | None, ...]
    read: tuple[Operation, ...]
    values: tuple[Value, ...]


def windows(operations: Sequence[Operation], model: Model, outages: Sequence[Outage] = ()) -> Place:
    """Return the windows of one place's operations, which are in the order of their beginnings."""
    values = tuple(
        {
            operation.value: None
            for operation in operations
            if operation.kind == "register" and operation.value
        }
    )
    numbers = {value: number for number, value in enumerate(values)}
    by_address: dict[str, list[int]] = {}
    for value, number in numbers.items():
        by_address.setdefault(value.address, []).append(number)
    of_address = {address: frozenset(indices) for address, indices in by_address.items()}
    writes: list[Write] = []
    written: list[Operation | None] = []
    reads: list[Read] = []
    read: list[Operation] = []
    own: dict[int, int] = {}
    last: dict[int, Operation] = {}  # of each connection
    sessions: dict[tuple[object, ...], int] = {}
    for operation in operations:
        if operation.kind == "lookup":
            session = (operation.connection, operation.question) if model.monotonic else (len(read),)
            reads.append(
                Read(
                    _seen_from(operation, model, outages),
                    operation.ended_s,
                    _accepted(operation, numbers, of_address),
                    sessions.setdefault(session, len(sessions)),
                    own.get(operation.connection, NO_WRITE)
                    if _sees_own_writes(operation, model, outages)
                    else NO_WRITE,
                )
            )
            read.append(operation)
            continue
        write = _write(operation, model, outages, numbers, of_address)
        if _may_be_answered_alone(operation, last.get(operation.connection)):
            write = msgspec.structs.replace(write, required=False)
        elif operation.acknowledged:
            own[operation.connection] = len(writes)
        last[operation.connection] = operation
        copies = [write]
        if operation.acknowledged and any(outage.touches(write.opens, write.closes) for outage in outages):
            copies.append(
                msgspec.structs.replace(write, required=False)
            )  # asked twice over a broken connection
        writes += copies
        written += [operation] * len(copies)
    for outage in outages:
        if outage.loses_s:
            writes.append(_loss(outage, writes))
            written.append(None)
    return Place(tuple(writes), tuple(reads), tuple(written), tuple(read), values)


def _may_be_answered_alone(operation: Operation, last: Operation | None) -> bool:
    """Return whether a worker may answer a registration without the store: the last change over its connection is the
    same one, and so short ago that the lease need not be renewed again."""
    return (
        last is not None
        and (last.kind, last.value) == (operation.kind, operation.value) == ("register", operation.value)
        and last.acknowledged
        and operation.began_s < last.ended_s + last.lease_s * RENEWAL_FRACTION
    )


def _seen_from(operation: Operation, model: Model, outages: Sequence[Outage]) -> float:
    """Return the moment whose state a lookup may still see."""
    outdated = [
        o.start_s
        for o in outages
        if o.touches(operation.began_s, operation.ended_s, after_s=o.converges_s + model.behind_s)
    ]
    return min([operation.began_s, *outdated]) - model.behind_s


def _sees_own_writes(operation: Operation, model: Model, outages: Sequence[Outage]) -> bool:
    """Return whether a read must see the writes of its connection.

    Not after a store came back empty: cached routes are served until all their brokers have registered."""
    return model.own_writes and not any(
        math.isinf(o.loses_s)
        and o.touches(operation.began_s, operation.ended_s, after_s=o.converges_s + model.behind_s)
        for o in outages
    )


def _accepted(
    operation: Operation, numbers: dict[Value, int], of_address: dict[str, frozenset[int]]
) -> frozenset[int]:
    if operation.value is None:
        return frozenset((ABSENT,))
    if operation.question == CLUSTERS:
        return of_address.get(operation.value.address, frozenset())
    return frozenset((numbers[operation.value],)) if operation.value in numbers else frozenset()


def _write(
    operation: Operation,
    model: Model,
    outages: Sequence[Outage],
    numbers: dict[Value, int],
    of_address: dict[str, frozenset[int]],
) -> Write:
    assert operation.value is not None
    closes = operation.ended_s
    if not operation.acknowledged:
        closes = max(
            [
                closes,
                *(o.end_s for o in outages if o.touches(operation.began_s, operation.ended_s + model.late_s)),
            ]
        )
        closes += model.late_s
    if operation.kind == "unregister":
        removed = of_address.get(operation.value.address, frozenset())
        return Write(operation.began_s, closes, operation.acknowledged, removes=removed)
    lapses_from, lapses_until = _lapse(operation, closes, model, outages)
    return Write(
        operation.began_s,
        closes,
        operation.acknowledged,
        sets=numbers[operation.value],
        lapses_from=lapses_from,
        lapses_until=lapses_until,
    )


def _lapse(
    operation: Operation, closes: float, model: Model, outages: Sequence[Outage]
) -> tuple[float, float]:
    """When the lease of a registration ends, if nothing renews it."""
    begins = operation.began_s + operation.lease_s * (1 - RENEWAL_FRACTION) - CLOCK_S
    until = closes + operation.lease_s + CLOCK_S
    for outage in sorted(outages, key=lambda outage: outage.end_s):
        lost_s = 0.0 if math.isinf(outage.loses_s) else outage.loses_s
        if outage.touches(begins, until + model.behind_s + lost_s, after_s=model.hold_s):
            until = max(until, outage.end_s + outage.converges_s + model.hold_s)
    return (
        begins if model.leases_last else operation.began_s,
        max(until, begins) if model.leases_end else math.inf,
    )


def _loss(outage: Outage, writes: Sequence[Write]) -> Write:
    """Return the write of a lossy outage: nothing is there, or what was there shortly before."""
    since = outage.start_s - outage.loses_s
    before = max((write.opens for write in writes if write.closes < since), default=-math.inf)
    lately = (
        index
        for index, write in enumerate(writes)
        if write.sets is not None and before <= write.closes and write.opens <= outage.end_s
        if write.lapses_until >= outage.end_s
    )
    restores = (NO_WRITE,) if math.isinf(outage.loses_s) else (NO_WRITE, *lately)
    return Write(outage.start_s, outage.end_s, False, restores=restores)
