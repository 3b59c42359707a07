"""What watchers are sent: a message for each group of entries, and one where entries were missed."""

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property
from typing import Final, Literal

from api import entries
from api.json_text import encoded
from registry.events.continuity import Break
from registry.events.entry import Event, EventId, EventKind
from registry.events.filters import KINDS
from registry.events.watched import NamedEntry, Wanted

__all__ = ["TIMES_FIELDS", "Chosen", "Message", "ResetCause", "change", "messages_of", "reset"]

ResetCause = Break | Literal["trimmed", "unreadable", "unknown_kind"]
"""Why entries may be missing: their numbers show it (`Break`); those behind the reader's position were trimmed; one has
no number; one is of a kind that this release does not know."""
Chosen = tuple[int, ...]
"""Which entries of a message are wanted."""
TIMES_FIELDS: Final = 6
"""Memory of a message, as a multiple of its fields: they are encoded up to four times."""
LEAST_BYTES: Final = 2000


class Message:
    """A group of entries, or a reset where there are none; `position` is the id to go on behind it.

    It is encoded once for all that want the whole of it; `bytes` is the memory that it takes then."""

    def __init__(self, position: EventId, named: Sequence[NamedEntry], cause: ResetCause | None) -> None:
        self.position: Final = position
        self.cause: Final = cause
        self.entries: Final = tuple(named)
        fields = sum(len(text) for one in named for text in one.event.fields.values())
        self.bytes: Final = LEAST_BYTES + TIMES_FIELDS * fields

    def wanted(self, wanted: Wanted, holders: Set[str] | None) -> Chosen | None:
        """Return which of the entries are wanted while these brokers hold the topic; None if this is not to be sent."""
        chosen = tuple(i for i, one in enumerate(self.entries) if wanted.wants(one, holders))
        return chosen if chosen or self.cause is not None else None

    def document(self, chosen: Chosen) -> bytes:
        """Return this as JSON with these entries: `{"id","reset","events"}`."""
        if len(chosen) == len(self.entries):
            return self._whole_document
        return self._with(self._texts[i] for i in chosen)

    def event(self, chosen: Chosen) -> bytes:
        """Return this with these entries as a Server-Sent Event."""
        return self._whole_event if len(chosen) == len(self.entries) else self._event(self.document(chosen))

    @cached_property
    def _texts(self) -> tuple[bytes, ...]:
        return tuple(encoded(entries.Entry.of(one.event).model_dump(by_alias=True)) for one in self.entries)

    @cached_property
    def _whole_document(self) -> bytes:
        return self._with(self._texts)

    @cached_property
    def _whole_event(self) -> bytes:
        return self._event(self._whole_document)

    def _with(self, texts: Iterable[bytes]) -> bytes:
        head = encoded({"id": str(self.position), "reset": self.cause})[:-1]
        return b'%s,"events":[%s]}' % (head, b",".join(texts))

    def _event(self, document: bytes) -> bytes:
        name = b"change" if self.cause is None else b"reset"
        return b"event: %s\nid: %s\ndata: %s\n\n" % (name, str(self.position).encode(), document)


def change(group: Sequence[Event]) -> Message:
    """Return the message of a group."""
    return Message(group[-1].id, tuple(map(NamedEntry, group)), None)


def reset(position: EventId, cause: ResetCause) -> Message:
    """Return the message that entries are missing, or never happened, before those behind this position."""
    return Message(position, (), cause)


def messages_of(group: Sequence[Event], before: EventId) -> Iterator[Message]:
    """Yield the messages of a group behind this position: where it begins a stream, or has an entry of an unknown kind,
    readers cannot go on with what they know."""
    kinds = {event.kind for event in group}
    if EventKind.STREAM_STARTED in kinds:
        yield reset(before, "incarnation")
    elif not kinds <= KINDS:
        yield reset(before, "unknown_kind")
    yield change(group)
