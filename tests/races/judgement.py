"""The notes and reads of a race against its history: what of `tests.races.history`'s rules does not hold."""

from collections.abc import Iterable, Sequence

import msgspec

from registry.fold import Event
from tests.races.asked import TABLES, Asked, Claimed, Note, Registering
from tests.races.history import Claim, Group, State, broken, position

ON_THE_WAY = ("expired", "acting")  # causes of entries that any operation may write for others


class Whole(msgspec.Struct, frozen=True):
    """The state in which a first registration comes into sight, with its whole table."""

    asked: Registering
    lo: tuple[int, int]

    @property
    def hi(self) -> tuple[int, int]:
        return self.lo

    def holds(self, state: State) -> bool:
        broker = state.living()[self.asked.name]
        writes = self.asked.number == 0 or self.asked.acting is not None
        topics = set(TABLES[self.asked.table]) if writes else set()
        return broker.topics.keys() == topics and (not writes or self.asked.whole(broker))


def judged(history: Sequence[Group], notes: Sequence[Note], seen: Iterable[Sequence[Claim]]) -> list[str]:
    """Complaints; none of a race that went right. The reads of one sequence do not go back."""
    own = _own_groups(history)
    entries = {event.id: event for group in history for event in group.events}
    complaints = [text for note in notes for text in _told(note, entries, own.get(note.op, []))]
    complaints += [f"heard of since: {event}" for event in entries.values() if _lost_too_soon(event)]
    claims = list(seen)
    claims += [[_done(note, own.get(note.op, []))] for note in notes if note.outcome == "done"]
    claims += [[whole] for whole in _first_ones(history, {note.op: note.asked for note in notes})]
    return complaints + broken(history, claims)


def _own_groups(history: Sequence[Group]) -> dict[str, list[Group]]:
    """Of each op, the groups that do what it was asked for."""
    found: dict[str, list[Group]] = {}
    for group in history:
        if any(event.cause not in ON_THE_WAY for event in group.events):
            found.setdefault(group.events[-1].text("op"), []).append(group)
    return found


def _lost_too_soon(event: Event) -> bool:
    return event.cause == "lost" and event.number("last_seen_ms") > event.number("closed_ms")


def _told(note: Note, entries: dict[str, Event], own: Sequence[Group]) -> Iterable[str]:
    """What is wrong with the entries of an operation."""
    if note.event_id and (note.event_id not in entries or entries[note.event_id].text("op") != note.op):
        yield f"not in the history: {note}"
    if any(not note.lo < group.at <= note.hi for group in own):
        yield f"told before it was asked, or after the answer: {note}"
    if note.outcome == "done" and own and position(note.event_id) < own[-1].at:
        yield f"acknowledged an entry that is not its last: {note}, last {own[-1].at}"
    if len(own) > 1 and not note.asked.slices:
        yield f"{len(own)} times in the history: {note}"
    if note.outcome == "given up" and any(
        event.kind != "conflict_seen" for group in own for event in group.events if not note.asked.slices
    ):
        yield f"given up, but done: {note}"


def _done(note: Note, own: Sequence[Group]) -> Claimed:
    if not own:
        return Claimed(note, note.lo, note.hi)
    return Claimed(note, own[-1].at, note.hi if note.asked.later else own[-1].at)


def _first_ones(history: Sequence[Group], asked: dict[str, Asked]) -> Iterable[Whole]:
    for group in history:
        for event in group.events:
            what = asked.get(event.text("op"))
            first = event.kind == "broker_registered" and event.cause == "first"
            if first and isinstance(what, Registering) and what.table != "huge":
                yield Whole(what, group.at)
