"""Writes summaries of blocks of entries, from the last block that has one up to the stream's end.

A store may fall back to an earlier state, and then goes on with other entries than were read here. So each read begins
with the last entry of the one before, and the script that writes a summary looks for the block's last entry: a stream
that has it has all before it. What was read of a block that is not full yet is kept between two runs, and read again
by another process.
"""

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Final

from registry.events.bloom import bloom
from registry.events.entry import FIRST, Event, EventId, following
from registry.events.summaries import VERSION, Summary, summary_or_none
from registry.events.terms import terms_of
from registry.keys import Keys
from registry.long_work.resting import rested
from registry.plans import Plan, ScriptCall, call

__all__ = ["Summarizer"]

BLOCK_ENTRIES: Final = 1_000
TERMS_MOST: Final = 3_000
"""A block ends with its first entry that makes it so many: 4.5 KB of bits. One entry may have many more."""
READ: Final = 50
"""An entry may have 64 KB."""
RUN_S: Final = 8.0
"""What a run reads for, so that one over an old stream is not long overdue."""
REST: Final = 3.0
"""A run takes a quarter of a core at most."""


class _Block:
    """What was read behind the id `after`; `last` is its last entry, None of a block without one."""

    def __init__(self, inc: str, after: EventId) -> None:
        self.inc = inc
        self.after = after
        self.last: Event | None = None
        self._count = 0
        self._terms: set[str] | None = set()
        """None where it may name anything."""

    @property
    def end(self) -> EventId:
        return self.after if self.last is None else self.last.id

    @property
    def lacks(self) -> int:
        """How many entries it may yet have."""
        return BLOCK_ENTRIES - self._count

    @property
    def is_full(self) -> bool:
        return self.lacks <= 0 or (self._terms is not None and len(self._terms) >= TERMS_MOST)

    def take(self, events: Iterable[Event]) -> None:
        """Add entries until it is full."""
        for event in events:
            self._add(event)
            if self.is_full:
                break

    def _add(self, event: Event) -> None:
        self.last = event
        self._count += 1
        if self._terms is None:
            return
        try:
            terms = set(terms_of(event))
        except (LookupError, ValueError, RecursionError):
            self._terms = None
        else:
            self._terms.update(terms)
            if len(terms) > TERMS_MOST:
                self._terms = None

    def summary(self) -> Summary:
        return Summary(self.inc, following(self.after), self.end, bloom(self._terms or ()))


class Summarizer:
    """Of one process."""

    def __init__(self, keys: Keys, *, rest: float = REST) -> None:
        self._keys = keys
        self._rest = rest
        self._block: _Block | None = None

    def run(self) -> Plan[int]:
        """Summarize what is new, drop summaries of entries that are gone; return how many summaries were written.

        What takes longer than some seconds is the next run's. Raises ResponseError for keys of another type."""
        written = yield from rested(self._run(), self._rest)
        first = yield call("XRANGE", self._keys.events, "-", "+", "COUNT", 1)
        if first:
            yield call("XTRIM", self._keys.event_summaries, "MINID", first[0][0])
        return written

    def _run(self) -> Plan[int]:
        until, written = perf_counter() + RUN_S, 0
        self._block = block = yield from self._resumed()
        while block is not None and perf_counter() < until:
            count = min(READ, block.lacks)
            entries = yield from self._read(block, count)
            if entries is None:  # the store does not have any more what was read before
                self._block = None
                break
            block.take(entries)
            if block.is_full:
                done = yield self._write(block)
                self._block = block = _Block(block.inc, block.end) if done else None
                written += done
            elif len(entries) < count:
                break
        return written

    def _resumed(self) -> Plan[_Block | None]:
        """Return the block to go on with: the one that was begun here, if it follows the last summary of the store."""
        keys = self._keys
        inc: str | None = yield call("HGET", keys.events_meta, "inc")
        newest = yield call("XREVRANGE", keys.event_summaries, "+", "-", "COUNT", 1)
        summary = summary_or_none(newest[0]) if newest else None
        if newest and (summary is None or summary.inc != inc):
            yield call("DEL", keys.event_summaries)  # of another stream or version, or damaged
            summary = None
        if inc is None:
            return None
        after = FIRST if summary is None else summary.last
        begun = self._block
        return begun if begun is not None and (begun.inc, begun.after) == (inc, after) else _Block(inc, after)

    def _read(self, block: _Block, count: int) -> Plan[Sequence[Event] | None]:
        """Return the entries that follow, None if the block's last one is not there any more or is another one."""
        if block.last is None:
            reply = yield call("XRANGE", self._keys.events, f"({block.end}", "+", "COUNT", count)
            return [Event.of(*entry) for entry in reply]
        reply = yield call("XRANGE", self._keys.events, str(block.end), "+", "COUNT", count + 1)
        events = [Event.of(*entry) for entry in reply]
        return events[1:] if events and events[0] == block.last else None

    def _write(self, block: _Block) -> ScriptCall:
        assert block.last is not None
        summary = block.summary()
        fields = summary.encoded()
        return ScriptCall(
            "write_summary",
            (self._keys.events_meta, self._keys.events, self._keys.event_summaries),
            (
                *(block.inc, str(block.after), str(summary.last)),
                f"{block.last.get('seq')} {block.last.get('op')}",
                *(VERSION, fields["first"], fields["bits"], fields["sum"]),
            ),
        )
