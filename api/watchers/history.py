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
GROUP_MOST: Final = 16 * COUNT
"""Entries of a group: scripts write some fifty, another program may write an end that never comes."""
READS_MOST: Final = 8
Rows = Sequence[tuple[str, dict[str, str]]]


class Place(NamedTuple):
    """A position, and the numbers of the entry there, as far as they are known."""

    position: EventId
    incarnation: str | None
    sequence: int


class History:
    """Reads the stream from behind `position` on; `position` is that of the last message that was read.

    It keeps no entries: of a group that a read does not have whole, the next one has more."""

    def __init__(self, keys: Keys, position: EventId) -> None:
        self._keys = keys
        self.position = position
        self._incarnation: str | None = None
        self._sequence = 0
        self._count = COUNT
        self._is_begun = False

    @property
    def place(self) -> Place | None:
        """From where what follows is the same for all; None before the position was found."""
        return Place(self.position, self._incarnation, self._sequence) if self._is_begun else None

    def go_to(self, place: Place) -> None:
        """Go on from where another reader was."""
        self.position, self._incarnation, self._sequence = place

    def next_messages(self) -> Plan[tuple[list[Message], bool]]:
        """Return the next messages, and whether they are the last that the stream has."""
        messages: list[Message] = []
        if not self._is_begun:
            messages += yield from self._begin()
            self._is_begun = True
        after = str(following(self.position))
        rows: Rows = yield call("XRANGE", self._keys.events, after, "+", "COUNT", self._count)
        found = self._messages_of([Event.of(*row) for row in rows])
        is_last = len(rows) < self._count
        self._count = COUNT if found or is_last else 2 * self._count
        return messages + found, is_last

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
                self._incarnation, self._sequence = at_position[0].incarnation, at_position[0].sequence
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

    def _messages_of(self, events: Sequence[Event]) -> list[Message]:
        messages: list[Message] = []
        group: list[Event] = []
        incarnation, sequence = self._incarnation, self._sequence
        for event in events:
            cause = break_before(event, incarnation, sequence) if event.is_numbered else None
            if cause is not None or not event.is_numbered:
                group.clear()
                self.position = self.position if event.is_numbered else event.id
                messages.append(reset(self.position, cause or "unreadable"))
            if cause is not None:
                self._incarnation = None  # said once, also where the group of this entry is read again
            if not event.is_numbered:
                continue
            incarnation, sequence = event.incarnation, event.sequence
            group.append(event)
            if event.is_last_of_group or len(group) == GROUP_MOST:
                messages += messages_of(group, self.position)
                group = []
                self.position = event.id
                self._incarnation, self._sequence = incarnation, sequence
        return messages


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
