"""What is behind a position in the store, for watchers that come back late."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from api.watchers.messages import Message, ResetCause, messages_of, reset
from registry.events.continuity import break_before
from registry.events.entry import FIRST, Event, EventId, following
from registry.keys import Keys
from registry.plans import Batch, Plan, call

__all__ = ["History", "Place", "Rows", "SharedReads"]

COUNT: Final = 64
"""Entries of a read: one may have 64 KB."""
READS_MOST: Final = 8
Rows = Sequence[tuple[str, dict[str, str]]]


class Place(NamedTuple):
    """A position, and the numbers of the entry there, as far as they are known."""

    position: EventId
    incarnation: str | None
    sequence: int


class History:
    """Reads the stream from behind `position` on; `position` is that of the last message that was read."""

    def __init__(self, keys: Keys, position: EventId) -> None:
        self._keys = keys
        self.position = position
        self._incarnation: str | None = None
        self._sequence = 0
        self._group: list[Event] = []
        self._is_begun = False

    @property
    def place(self) -> Place | None:
        """From where what follows is the same for all; None within a group, or before the position was found."""
        if not self._is_begun or self._group:
            return None
        return Place(self.position, self._incarnation, self._sequence)

    def go_to(self, place: Place) -> None:
        """Go on from where another reader was."""
        self.position, self._incarnation, self._sequence = place

    @property
    def is_between_groups(self) -> bool:
        """Whether no group was read in part."""
        return not self._group

    def next_messages(self) -> Plan[tuple[list[Message], bool]]:
        """Return the next messages, and whether they are the last that the stream has."""
        messages: list[Message] = []
        if not self._is_begun:
            messages += yield from self._begin()
            self._is_begun = True
        last = self._group[-1].id if self._group else self.position
        rows: Rows = yield call("XRANGE", self._keys.events, str(following(last)), "+", "COUNT", COUNT)
        for event_id, fields in rows:
            messages += self._take(Event.of(event_id, fields))
        return messages, len(rows) < COUNT

    def _begin(self) -> Plan[list[Message]]:
        """Find the entry at the position; return a reset if the stream has none there, and may have lost others."""
        here, events = str(self.position), self._keys.events
        rows: Sequence[Rows] = yield Batch(
            (
                call("XRANGE", events, here, here),
                call("XRANGE", events, "-", "+", "COUNT", 1),
                call("XREVRANGE", events, "+", "-", "COUNT", 1),
            )
        )
        at_position, first, last = ([Event.of(*row) for row in found] for found in rows)
        cause: ResetCause | None = None
        if at_position:
            if at_position[0].is_numbered:
                self._goes_on_from(at_position[0])
        elif not last or self.position < first[0].id:
            if not first:
                cause = None if self.position == FIRST else "incarnation"
            elif not (first[0].is_numbered and first[0].sequence == 1):  # which says itself that it begins
                cause = "trimmed"
            self.position = FIRST
        else:
            cause = "rollback"
            self.position = min(self.position, last[0].id)
        return [] if cause is None else [reset(self.position, cause)]

    def _take(self, event: Event) -> list[Message]:
        if not event.is_numbered:
            return self._broken("unreadable", event.id)
        messages: list[Message] = []
        if (cause := break_before(event, self._incarnation, self._sequence)) is not None:
            messages += self._broken(cause, self.position)
        self._goes_on_from(event)
        self._group.append(event)
        if event.is_last_of_group:
            group, self._group = self._group, []
            messages += messages_of(group, self.position)
            self.position = event.id
        return messages

    def _goes_on_from(self, event: Event) -> None:
        self._incarnation, self._sequence = event.incarnation, event.sequence

    def _broken(self, cause: ResetCause, position: EventId) -> list[Message]:
        self._group.clear()
        self.position = position
        return [reset(position, cause)]


class SharedReads:
    """What was read of the stream just now, for readers that come the same way: thousands may after a reload."""

    def __init__(self) -> None:
        self._reads: dict[Place, tuple[list[Message], Place]] = {}

    def next_messages(self, history: History) -> Plan[tuple[list[Message], bool]]:
        """As those of the history, from memory where another one has read them; they are not the last then."""
        before = history.place
        if before in self._reads:
            messages, place = self._reads[before]
            history.go_to(place)
            return messages, False
        messages, is_last = yield from history.next_messages()
        after = history.place
        if before is not None and after is not None and not is_last:
            self._reads[before] = messages, after
            if len(self._reads) > READS_MOST:
                del self._reads[next(iter(self._reads))]
        return messages, is_last
