"""Entries of the event stream: ids, kinds and fields (docs/events.md)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from rocketmq_remoting.typed import decoded


class EventKind(StrEnum):
    """What an entry is about. Scripts append entries of these kinds (lua/includes/emit.lua)."""

    STREAM_STARTED = "stream_started"
    BROKER_REGISTERED = "broker_registered"
    BROKER_UPDATED = "broker_updated"
    BROKER_REMOVED = "broker_removed"
    TOPICS_CHANGED = "topics_changed"
    MAPPINGS_CHANGED = "mappings_changed"
    KV_CHANGED = "kv_changed"
    SETTINGS_CHANGED = "settings_changed"
    HOLD_CHANGED = "hold_changed"
    DRAIN_CHANGED = "drain_changed"
    ACCESS_CHANGED = "access_changed"
    ACCESS_DENIED = "access_denied"
    CONFLICT_SEEN = "conflict_seen"
    TABLES_REPAIRED = "tables_repaired"
    DRIFT_CHANGED = "drift_changed"
    CHECKPOINT = "checkpoint"


VERSION: Final = "1"
"""Field `v` of every entry."""
AUDITED_KINDS: Final = frozenset(
    {
        EventKind.DRAIN_CHANGED,
        EventKind.KV_CHANGED,
        EventKind.SETTINGS_CHANGED,
        EventKind.HOLD_CHANGED,
        EventKind.ACCESS_CHANGED,
        EventKind.ACCESS_DENIED,
        EventKind.CONFLICT_SEEN,
    }
)
AUDITED_CAUSES: Final = frozenset({"wipe", "restore", "topic_register", "topic_delete", "evicted"})
"""Causes of other kinds: what operators did to topics and members."""


DIGITS: Final = 19
"""Numbers of fewer digits are below 2^63."""


class EventId(NamedTuple):
    """Place of an entry in its stream: Unix ms of the Redis clock, and a number within that ms. Ids are ordered."""

    ms: int
    number: int = 0

    @classmethod
    def parse(cls, text: str) -> "EventId":
        """Read `1767225599000-2`; the number is 0 where it is left out. Raises ValueError."""
        ms, _, number = text.partition("-")
        return cls(int(ms), int(number or 0))

    def __str__(self) -> str:
        """The id as Redis writes it."""
        return f"{self.ms}-{self.number}"


ID_PART_END: Final = 1 << 64
"""Redis has 64 bits for each part of an id."""
FIRST: Final = EventId(0)
"""Before every entry."""
LAST: Final = EventId(ID_PART_END - 1, ID_PART_END - 1)
"""Behind every entry."""


def following(event_id: EventId) -> EventId:
    """Return the lowest id behind this one."""
    if event_id.number < ID_PART_END - 1:
        return EventId(event_id.ms, event_id.number + 1)
    return EventId(event_id.ms + 1)


def preceding(event_id: EventId) -> EventId:
    """Return the highest id before this one; before the first its `ms` is negative."""
    if event_id.number > 0:
        return EventId(event_id.ms, event_id.number - 1)
    return EventId(event_id.ms - 1, ID_PART_END - 1)


class Event(msgspec.Struct, frozen=True):
    """One entry of the stream; `fields` are all of its fields, as text.

    What every reader asks of every entry is read without `get`, whose call takes longer than the look itself."""

    id: EventId
    fields: Mapping[str, str]

    @classmethod
    def of(cls, event_id: str, fields: Mapping[str, str]) -> "Event":
        """Return the entry that XRANGE or XREAD replied."""
        return cls(EventId.parse(event_id), fields)

    @property
    def kind(self) -> str:
        """One of EventKind; another one where a later release wrote the entry."""
        return self.fields.get("kind", "")

    @property
    def cause(self) -> str:
        return self.fields.get("cause", "")

    @property
    def incarnation(self) -> str:
        """The incarnation of the stream."""
        return self.fields.get("inc", "")

    @property
    def sequence(self) -> int:
        """Number of the entry in its incarnation, from 1; 0 when it has none."""
        return int(self.fields.get("seq") or 0)

    @property
    def is_numbered(self) -> bool:
        """Whether `seq` and `inc` can be read; not so of an entry that another hand wrote."""
        fields = self.fields
        return _is_number(fields.get("seq", "")) and _is_number(fields.get("inc") or "0")

    @property
    def is_audited(self) -> bool:
        """Whether the entry is of an operator's change, and is copied to `audit`."""
        return self.kind in AUDITED_KINDS or self.cause in AUDITED_CAUSES

    @property
    def is_last_of_group(self) -> bool:
        """Whether the script that appended the entry appended no other behind it."""
        part = self.fields.get("part")
        if not part:
            return True
        number, _, parts = part.partition("/")
        return number == parts

    def get(self, name: str) -> str:
        """Return a field, "" when it is absent."""
        return self.fields.get(name, "")

    def number(self, name: str) -> int:
        """Return a field that holds a number. Raises KeyError, ValueError."""
        return int(self.fields[name])

    def json(self, name: str, kind: Any) -> Any:
        """Return a field of JSON, read as `kind`. Raises KeyError, msgspec.DecodeError."""
        return decoded(self.fields[name].encode(errors="surrogatepass"), kind)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < DIGITS
