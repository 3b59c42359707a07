"""The judge of a race: checks its notes and reads against its history by the rules of `tests.races.history`."""

from collections.abc import Iterable, Sequence

import msgspec

from registry.events.entry import Event
from tests.races.history import Claim, Group, State, broken, position
from tests.races.operations import TABLES, Claimed, Note, Operation, Registering

ON_THE_WAY = ("expired", "acting")  # causes of entries that any operation may write for others


class Whole(msgspec.Struct, frozen=True):
    """A claim that a first registration is visible with its whole table."""

    operation: Registering
    lo: tuple[int, int]

    @property
    def hi(self) -> tuple[int, int]:
        return self.lo

    def holds(self, state: State) -> bool:
        broker = state.living()[self.operation.name]
        writes = self.operation.number == 0 or self.operation.acting is not None
        topics = set(TABLES[self.operation.table]) if writes else set()
        return broker.topics.keys() == topics and (not writes or self.operation.whole(broker))


def judged(history: Sequence[Group], notes: Sequence[Note], seen: Iterable[Sequence[Claim]]) -> list[str]:
    """Return complaints, none of a correct race. The reads of one sequence do not go back."""
    own = _own_groups(history)
    entries = {str(event.id): event for group in history for event in group.events}
    complaints = [text for note in notes for text in _entry_errors(note, entries, own.get(note.op, []))]
    complaints += [f"renewed since: {event}" for event in entries.values() if _removed_too_soon(event)]
    claims = list(seen)
    claims += [[_done(note, own.get(note.op, []))] for note in notes if note.outcome == "done"]
    claims += [[whole] for whole in _first_ones(history, {note.op: note.operation for note in notes})]
    return complaints + broken(history, claims)


def _own_groups(history: Sequence[Group]) -> dict[str, list[Group]]:
    """Return, of each op, the groups that make its change."""
    own: dict[str, list[Group]] = {}
    for group in history:
        if any(event.cause not in ON_THE_WAY for event in group.events):
            own.setdefault(group.events[-1].get("op"), []).append(group)
    return own


def _removed_too_soon(event: Event) -> bool:
    return event.cause == "lost" and event.number("last_seen_ms") > event.number("closed_ms")


def _entry_errors(note: Note, entries: dict[str, Event], own: Sequence[Group]) -> Iterable[str]:
    """Yield what is wrong with the entries of an operation."""
    if note.event_id and (note.event_id not in entries or entries[note.event_id].get("op") != note.op):
        yield f"not in the history: {note}"
    if any(not note.lo < group.at <= note.hi for group in own):
        yield f"before the request, or after the reply: {note}"
    if note.outcome == "done" and own and position(note.event_id) < own[-1].at:
        yield f"acknowledged an entry that is not its last: {note}, last {own[-1].at}"
    if len(own) > 1 and not note.operation.slices:
        yield f"{len(own)} times in the history: {note}"
    if note.outcome == "given up" and any(
        event.kind != "conflict_seen" for group in own for event in group.events if not note.operation.slices
    ):
        yield f"given up, but done: {note}"


def _done(note: Note, own: Sequence[Group]) -> Claimed:
    if not own:
        return Claimed(note, note.lo, note.hi)
    return Claimed(note, own[-1].at, note.hi if note.operation.later else own[-1].at)


def _first_ones(history: Sequence[Group], operations: dict[str, Operation]) -> Iterable[Whole]:
    for group in history:
        for event in group.events:
            operation = operations.get(event.get("op"))
            first = event.kind == "broker_registered" and event.cause == "first"
            if first and isinstance(operation, Registering) and operation.table != "huge":
                yield Whole(operation, group.at)
