"""Writing a registration that is decided: in one script, or a large table in several.

Each script writes only under the token, claim or generation of what was decided, so another writer in between stops
it. Slices of a large first table are staged under a claimed epoch, where no route shows them; those of a live broker
follow its first script, and the data version comes with the last, so that a broken-off registration is repeated.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from registry.plans import Batch, Plan
from registry.queue_data.slices import COMMIT_MAX_BYTES, Slice, WrittenSlice, arguments
from registry.registration.decision import (
    Again,
    Claimed,
    ClaimLost,
    Decision,
    Done,
    End,
    claim_reply,
    register_reply,
)
from registry.registration.diff import TableDiff
from registry.registration.request import RegisterContext
from registry.registration.script_calls import (
    CompleteTable,
    RegisterRequest,
    claim_call,
    register_call,
    register_request,
    stage_call,
    write_slice_call,
)
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody


class Write(msgspec.Struct, frozen=True):
    """What is to be written of a registration; `body` is None when the signature says that it is as stored."""

    context: RegisterContext
    version: DataVersion
    decision: Decision
    diff: TableDiff
    body: RegisterBrokerBody | None = None


def write(wanted: Write) -> Plan[End]:
    """Write a registration under its decision."""
    if wanted.decision.first and len(wanted.diff.slices) > 1:
        return (yield from _write_claimed(wanted))
    head, rest = wanted.diff.slices[:1], wanted.diff.slices[1:]
    values = arguments(head[0] if head else None, head)
    end = _end((yield register_call(wanted.context, _request(wanted, rest), values)))
    return (yield from _write_rest(wanted, rest, end)) if isinstance(end, Done) else end


def _write_claimed(wanted: Write) -> Plan[End]:
    """Write a large first table: stage its slices under a claimed epoch, then commit them with their entries."""
    claimed = claim_reply((yield claim_call(wanted.context, wanted.diff.growth)))
    if not isinstance(claimed, Claimed):
        return claimed
    staged, rest = _split_at_commit(wanted.diff.slices)
    for rows in staged:
        calls = tuple([stage_call(wanted.context, claimed, batch) for batch in rows.staged()])
        if not all((yield Batch(calls))):
            return ClaimLost()
    request = replace(_request(wanted, rest), claim=claimed.epoch, leftovers=int(claimed.leftovers))
    end = _end((yield register_call(wanted.context, request, arguments(None, staged))))
    return (yield from _write_rest(wanted, rest, end)) if isinstance(end, Done) else end


def _write_rest(wanted: Write, rest: tuple[Slice, ...], done: Done) -> Plan[End]:
    """Write the further slices of a live broker."""
    for i, rows in enumerate(rest, 1):
        complete = CompleteTable(wanted.version, wanted.diff.applied) if i == len(rest) else None
        written = WrittenSlice.of((yield write_slice_call(wanted.context, done, rows, complete=complete)))
        if written.stale:
            return Again(done.event_id, done.deferred)
        done = replace(done, event_id=written.event_id, generation=written.generation)
    return done


def _request(wanted: Write, rest: tuple[Slice, ...]) -> RegisterRequest:
    return replace(
        register_request(wanted.context, wanted.version, wanted.body),
        token=wanted.decision.token,
        applied=int(wanted.diff.applied),
        last=int(not rest),
        adds=wanted.diff.growth,
    )


def _end(raw: list[Any]) -> End:
    """A new decision in reply to a write says that the old one no longer holds."""
    reply = register_reply(raw)
    return Again() if isinstance(reply, Decision) else reply


def _split_at_commit(slices: tuple[Slice, ...]) -> tuple[tuple[Slice, ...], tuple[Slice, ...]]:
    """Return the slices whose entries the commit can carry, and the others."""
    size = 0
    for i, rows in enumerate(entry.rows for entry in slices):
        size += len(rows)
        if size > COMMIT_MAX_BYTES:
            return slices[:i], slices[i:]
    return slices, ()
