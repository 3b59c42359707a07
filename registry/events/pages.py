"""Pages of entries from either end of the stream, filtered, with a bound on what one page reads.

Ids begin with the time of record and never decrease, so the stream itself is its index by time: a page begins at an id
or a time without a look at what is before. Where a filter matches little, blocks whose summary says so are skipped
(`summaries.py`), and what has no summary is read: a page may be short, and says that there may be more.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from time import monotonic
from typing import Final

import msgspec
from msgspec.structs import replace

from registry.events.consumers import Consumer
from registry.events.entry import FIRST, LAST, Event, EventId, following, preceding
from registry.events.filters import Filter
from registry.events.summaries import Part, SummarizedReading
from registry.events.trim import AUDITOR
from registry.keys import Keys
from registry.plans import Batch, Plan, call

PAGE_CHARACTERS: Final = 2_000_000
"""With so many a page ends: a thousand entries of 256 KB would keep Redis and this process busy for seconds."""
ENTRIES_AT_ONCE: Final = 32
"""The first command of a page reads so many at most."""
BLOCK_ENTRIES: Final = 100
"""A command reads so many at most: some 0.4 ms of Redis, and 13 MB if all are as long as scripts write them."""
BLOCK_CHARACTERS: Final = 500_000
"""Those that follow long entries read fewer."""
GROWTH: Final = 4
EXAMINED_ENTRIES: Final = 20_000
EXAMINED_CHARACTERS: Final = 16_000_000
"""What a page looks at, wanted or not: some 0.2 s."""
PAGE_S: Final = 1.0
"""How long a page reads from a store that is slow."""


class Range(msgspec.Struct, frozen=True):
    """Entries of a stream, both ids included; none if `first` is behind `last`. `summarized` has the keys of the
    namespace whose summaries are of this stream."""

    stream: str
    first: EventId = FIRST
    last: EventId = LAST
    audited_only: bool = False
    summarized: Keys | None = None


class Page(msgspec.Struct, frozen=True):
    """Entries in the order of reading. `examined` is the last that was looked at, None if there was none.

    `more`: behind it there may be others."""

    events: tuple[Event, ...]
    examined: EventId | None
    more: bool


def read_page(ranges: Sequence[Range], wanted: Filter, *, newest_first: bool, limit: int) -> Plan[Page]:
    """Return the next entries of ranges, which follow one another: `limit`, or fewer if what is read is much."""
    reading = _Reading(limit)
    for at in reversed(ranges) if newest_first else ranges:
        of_range = replace(wanted, audited=at.audited_only)
        if not (yield from _read_range(reading, at, of_range, newest_first=newest_first)):
            return reading.page(more=True)
    return reading.page(more=False)


def _read_range(reading: "_Reading", at: Range, wanted: Filter, *, newest_first: bool) -> Plan[bool]:
    """Read the parts of a range that may have wanted entries; return whether it was read before the page was full."""
    summarized = SummarizedReading(at.summarized, wanted, newest_first=newest_first)
    first, last = at.first, at.last
    if newest_first:  # XREVRANGE of what is before the first entry would take Redis through the whole stream
        oldest = yield call("XRANGE", at.stream, "-", "+", "COUNT", 1)
        first = max(first, EventId.parse(oldest[0][0])) if oldest else following(last)
    while first <= last:
        if reading.is_over:
            return False
        part = yield from summarized.next_part(first, last)
        reading.skip(part)
        if not (yield from _read_part(reading, at.stream, part, wanted, newest_first=newest_first)):
            return False
        if newest_first:
            last = preceding(part.first)
        else:
            first = following(part.last)
    return True


def _read_part(
    reading: "_Reading", stream: str, part: Part, wanted: Filter, *, newest_first: bool
) -> Plan[bool]:
    """Read entries between two ids; return whether all were looked at before the page was full."""
    first, last = part.first, part.last
    while first <= last:
        if reading.is_over:
            return False
        count = reading.next_count()
        if newest_first:
            block = yield call("XREVRANGE", stream, str(last), str(first), "COUNT", count)
        else:
            block = yield call("XRANGE", stream, str(first), str(last), "COUNT", count)
        if not reading.take(block, wanted):
            return False
        if len(block) < count:
            return True
        if newest_first:
            last = preceding(EventId.parse(block[-1][0]))
        else:
            first = following(EventId.parse(block[-1][0]))
    return True


def event_ranges(keys: Keys, first: EventId, last: EventId) -> Plan[Sequence[Range]]:
    """Return the entries of the event stream between two ids."""
    yield from ()
    return (Range(keys.events, first, last, summarized=keys),)


def audit_ranges(keys: Keys, first: EventId, last: EventId) -> Plan[Sequence[Range]]:
    """Return operators' entries between two ids, each once: the copies, and those of the event stream without one.

    A job copies new entries each few seconds. Copies may begin later than the event stream does, since they have a
    bound of their own. From there to the last copy, as it was read here, each entry has one: trimming drops the oldest.
    """
    oldest, newest, recorded, report = yield Batch(
        (
            call("XRANGE", keys.audit, "-", "+", "COUNT", 1),
            call("XREVRANGE", keys.audit, "+", "-", "COUNT", 1),
            call("XREVRANGE", keys.events, "+", "-", "COUNT", 1),
            call("HGET", keys.events_consumers, AUDITOR),
        )
    )
    if not oldest:
        return (Range(keys.events, first, last, audited_only=True, summarized=keys),)
    begin, end = EventId.parse(oldest[0][0]), EventId.parse(newest[0][0])
    copied = _copied_to(report)
    if recorded and end < copied <= EventId.parse(recorded[0][0]):
        end = copied  # what is between was looked at, and no operator's
    return (
        Range(keys.events, first, min(last, preceding(begin)), audited_only=True, summarized=keys),
        Range(keys.audit, max(first, begin), min(last, end)),
        Range(keys.events, max(first, following(end)), last, audited_only=True, summarized=keys),
    )


def _copied_to(report: str | None) -> EventId:
    """Return up to where the job has looked for entries to copy; FIRST if its report cannot be read."""
    try:
        return Consumer.parse(report).position if report else FIRST
    except ValueError:
        return FIRST


class _Reading:
    """What a page has read so far, and how much more it may."""

    def __init__(self, limit: int) -> None:
        self.examined: EventId | None = None
        self._limit = limit
        self._events: list[Event] = []
        self._entries = self._characters = self._page_characters = self._summary_characters = 0
        self._count = min(limit, ENTRIES_AT_ONCE)
        self._began_s = monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the page ends here; never before its first entry, so that the next one begins further on."""
        return self.examined is not None and (
            len(self._events) == self._limit
            or self._page_characters >= PAGE_CHARACTERS
            or self._entries >= EXAMINED_ENTRIES
            or self._characters + self._summary_characters >= EXAMINED_CHARACTERS
            or monotonic() - self._began_s >= PAGE_S
        )

    def next_count(self) -> int:
        """Return how many entries to read at once: few at first, then more, fewer of long ones."""
        count = self._count
        if self._characters:
            count = min(count, max(1, BLOCK_CHARACTERS * self._entries // self._characters))
        self._count = min(BLOCK_ENTRIES, self._count * GROWTH)
        return count

    def skip(self, part: Part) -> None:
        """Note what was skipped before a part, and what was read of summaries for it."""
        self.examined = self.examined if part.passed is None else part.passed
        self._summary_characters += part.characters

    def take(self, block: Sequence[tuple[str, Mapping[str, str]]], wanted: Filter) -> bool:
        """Add the wanted entries of a block; return whether all of it was looked at before the page was full."""
        text = "\n".join(chain.from_iterable(fields.values() for _, fields in block))
        self._entries += len(block)
        self._characters += len(text)
        if not wanted.may_want(text):
            self.examined = EventId.parse(block[-1][0]) if block else self.examined
            return True
        for place, (event_id, fields) in enumerate(block, 1):
            event = Event.of(event_id, fields)
            self.examined = event.id
            if wanted.wants(event):
                self._events.append(event)
                self._page_characters += sum(map(len, fields.values()))
                if len(self._events) == self._limit:
                    return place == len(block)
        return True

    def page(self, *, more: bool) -> Page:
        return Page(tuple(self._events), self.examined, more)
