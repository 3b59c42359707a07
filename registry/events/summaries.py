"""Summaries of blocks of entries: what a block names, by which readers skip blocks without a look at their entries.

A job writes one for each block (`summarizer.py`), as an entry of a stream of its own whose id is that of the block's
last entry. A block without a summary, as the newest is, or with a damaged one or one of another version or incarnation,
is read: a summary makes a reader faster and no answer different.
"""

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from zlib import crc32

import msgspec
from redis.exceptions import ResponseError

from registry.events.bloom import hash_of, may_have
from registry.events.entry import EventId, following, preceding
from registry.events.filters import Filter
from registry.events.terms import terms_wanted
from registry.keys import Keys
from registry.plans import Batch, Plan, call

__all__ = ["VERSION", "Part", "SummarizedReading", "Summary", "summary_or_none"]

VERSION: Final = "1"
"""Another one for each change of what terms entries of a kind have."""
AT_ONCE: Final = 8
"""The first command reads so many summaries."""
AT_ONCE_MOST: Final = 128
"""A command reads so many at most: some 0.2 ms of Redis, and 0.8 MB if all are as long as they can be."""
GROWTH: Final = 4


class Summary(msgspec.Struct, frozen=True):
    """What entries of an incarnation with ids from `first` to `last` name; without `bits` it may be anything."""

    inc: str
    first: EventId
    last: EventId
    bits: bytes

    @classmethod
    def parse(cls, summary_id: str, fields: Mapping[str, str]) -> "Summary":
        """Read what `encoded` returned. Raises KeyError, ValueError."""
        if fields["v"] != VERSION or fields["sum"] != _checksum(summary_id, fields):
            raise ValueError("damaged, or of another version")
        bits = b64decode(fields["bits"], validate=True)
        return cls(fields["inc"], EventId.parse(fields["first"]), EventId.parse(summary_id), bits)

    def encoded(self) -> dict[str, str]:
        """Return the summary as fields of an entry."""
        fields = {
            "v": VERSION,
            "inc": self.inc,
            "first": str(self.first),
            "bits": b64encode(self.bits).decode(),
        }
        return fields | {"sum": _checksum(str(self.last), fields)}

    def may_match(self, wanted: Sequence[Sequence[int]]) -> bool:
        """Return whether the block may have terms of each of these sets, which are hashes."""
        return not self.bits or all(
            any(may_have(self.bits, term_hash) for term_hash in hashes) for hashes in wanted
        )


def summary_or_none(entry: tuple[str, Mapping[str, str]]) -> Summary | None:
    """Return the summary of an entry of the stream of summaries, None for one that cannot be read."""
    try:
        return Summary.parse(*entry)
    except (KeyError, ValueError):
        return None


def _checksum(summary_id: str, fields: Mapping[str, str]) -> str:
    text = " ".join((summary_id, *(fields[name] for name in ("v", "inc", "first", "bits"))))
    return f"{crc32(text.encode(errors='replace')):08x}"


class Part(NamedTuple):
    """Ids from `first` to `last` are to be read; none if `first` is behind `last`. What is before them, in the order of
    reading, was skipped: `passed` is the last id of that, None without one."""

    first: EventId
    last: EventId
    passed: EventId | None = None
    characters: int = 0
    """How many of summaries were read for it."""


class SummarizedReading:
    """Parts of the event stream that a filter may want, in the order of reading."""

    def __init__(self, keys: Keys | None, wanted: Filter, *, newest_first: bool) -> None:
        """`keys` is None for a stream without summaries."""
        terms = terms_wanted(wanted)
        self._keys = keys
        self._wanted = [tuple(map(hash_of, some)) for some in terms]
        self._newest_first = newest_first
        self._ahead = deque[Summary]()
        self._seen_to: EventId | None = None
        self._count = AT_ONCE
        self._at_end = keys is None or not terms

    def next_part(self, first: EventId, last: EventId) -> Plan[Part]:
        """Return the next part of what is between two ids, both included, after one read of summaries at most."""
        characters = 0
        if self._keys is not None and not (self._ahead or self._at_end):
            characters = yield from self._read(self._keys, first, last)
        part = self._newest_part(first, last) if self._newest_first else self._oldest_part(first, last)
        return part._replace(characters=characters)

    def _oldest_part(self, first: EventId, last: EventId) -> Part:
        passed = None
        while self._ahead:
            summary = self._ahead[0]
            if first < summary.first:
                return Part(first, preceding(summary.first), passed)
            self._ahead.popleft()
            if summary.last < first:
                continue
            if summary.may_match(self._wanted):
                return Part(first, summary.last, passed)
            passed, first = summary.last, following(summary.last)
        return Part(first, last if self._at_end else preceding(first), passed)

    def _newest_part(self, first: EventId, last: EventId) -> Part:
        passed = None
        while self._ahead:
            summary = self._ahead[0]
            if summary.last < last:
                return Part(following(summary.last), last, passed)
            self._ahead.popleft()
            begin = max(first, summary.first)
            if last < begin:
                continue
            if summary.may_match(self._wanted):
                return Part(begin, last, passed)
            passed, last = begin, preceding(begin)
        return Part(first if self._at_end else following(last), last, passed)

    def _read(self, keys: Keys, first: EventId, last: EventId) -> Plan[int]:
        """Read summaries of blocks that end in a range, and return how many characters that were.

        The range's last block may end behind it: it is read without its summary."""
        if self._newest_first:
            last = last if self._seen_to is None else min(last, preceding(self._seen_to))
            of_range = call("XREVRANGE", keys.event_summaries, str(last), str(first), "COUNT", self._count)
        else:
            first = first if self._seen_to is None else max(first, following(self._seen_to))
            of_range = call("XRANGE", keys.event_summaries, str(first), str(last), "COUNT", self._count)
        try:
            inc, entries = yield Batch((call("HGET", keys.events_meta, "inc"), of_range))
        except ResponseError:  # a key of another type, which a walk over the tables deletes
            inc, entries = None, []
        summaries = (summary_or_none(entry) for entry in entries)
        self._ahead.extend(summary for summary in summaries if summary is not None and summary.inc == inc)
        self._seen_to = EventId.parse(entries[-1][0]) if entries else None
        self._at_end = len(entries) < self._count
        self._count = min(AT_ONCE_MOST, self._count * GROWTH)
        return sum(len(text) for _, fields in entries for text in fields.values())
