"""The position up to which entries were logged and counted, a report of our own in `events:consumers`.

The process that has the claim of the walk reads and writes it, each time in a script that compares the claim: one that
stood still while another took over neither gets entries nor sets the position back.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from registry.clock import TIME, unix_ms
from registry.events.consumers import Consumer
from registry.events.entry import FIRST, Event, EventId
from registry.keys import Keys
from registry.plans import Batch, Call, Plan, ScriptCall, as_json, call

__all__ = ["OBSERVER", "Claim", "Position", "Unobserved", "read_next", "write_position"]

OBSERVER: Final = "event_log"
"""The field of `events:consumers`."""
READ: Final = 256
"""Entries of one read: one may have 64 KB."""
NEW_MS: Final = 30_000
"""Where there is no position, entries of so long ago are new: a name server that starts has written some already."""


class Claim(msgspec.Struct, frozen=True):
    """The claim of the walk: the process that asks, and for how many ms a script renews it."""

    walker: str
    ttl_ms: int


class Position(Consumer):
    """The entry that was observed last; `inc` is its incarnation, "" where that is not known."""

    inc: str = ""

    def behind(self, events: Sequence[Event]) -> tuple["Position", int]:
        """Return the position behind these entries, and how many between it and this one are gone, as far as numbers
        tell: those of another incarnation do not, and count from its first one. One without a number leaves sequence
        and incarnation."""
        if not events:
            return self, 0
        seq, inc, gone = self.seq, self.inc, 0
        for event in events:
            if event.is_numbered:
                number, of = event.sequence, event.incarnation
                if inc:
                    gone += max(number - (seq + 1 if of == inc else 1), 0)
                seq, inc = number, of
        return Position(str(events[-1].id), seq, self.at_ms, inc=inc), gone


class Unobserved(msgspec.Struct, frozen=True):
    """The entries behind `position`, READ at most, at `now_ms` of the Redis clock.

    `observed` are the last ones up to `position`, newest first, for a process that has just got the claim: an operation
    may have many.
    `went_back`: the stream ends before the position that was written, and is gone on with at `position`."""

    position: Position
    events: tuple[Event, ...]
    now_ms: int
    observed: tuple[Event, ...] = ()
    went_back: bool = False

    @property
    def more(self) -> bool:
        """Whether there may be others behind them."""
        return len(self.events) == READ or self.went_back


def read_next(keys: Keys, claim: Claim, reached: Position | None) -> Plan[Unobserved | None]:
    """Return the next entries, None while another process has the claim; it is renewed.

    `reached` is the position of this process, which may not have been written."""
    newest = call("XREVRANGE", keys.events, "+", "-", "COUNT", 1)
    likely = () if reached is None else (_behind(keys, reached),)
    (claimed, *texts), time, last, *behind = yield Batch((_keep(keys, claim), TIME, newest, *likely))
    if not claimed:
        return None
    now_ms = unix_ms(time)
    known = [position for position in (reached, _parsed(texts[0])) if position is not None]
    begin = Position(str(EventId(max(now_ms - NEW_MS, 0))))
    position = max(known, key=lambda one: one.position, default=begin)
    observed = (yield from _observed(keys, position)) if known and reached is None else ()
    entries = behind[0] if position is reached else (yield _behind(keys, position))
    if entries:
        return Unobserved(position, _events(entries), now_ms, observed)
    return _at_end(position, Event.of(*last[0]) if last else None, now_ms)


def _behind(keys: Keys, position: Position) -> Call:
    return call("XRANGE", keys.events, f"({position.position}", "+", "COUNT", READ)


def _observed(keys: Keys, position: Position) -> Plan[tuple[Event, ...]]:
    """Return the last entries up to a position, newest first."""
    return _events((yield call("XREVRANGE", keys.events, str(position.position), "-", "COUNT", READ)))


def _events(entries: Iterable[tuple[str, Mapping[str, str]]]) -> tuple[Event, ...]:
    return tuple(Event.of(*entry) for entry in entries)


def _at_end(position: Position, event: Event | None, now_ms: int) -> Unobserved:
    """Return no entries, and the position: that of the last entry where the stream ends before it.

    A store that came back as it was earlier, or another one, goes on with lower ids if its clock is behind. Another
    incarnation is read from its start."""
    if event is None or event.id >= position.position:
        return Unobserved(position, (), now_ms)
    if not position.inc:
        return Unobserved(Position().behind((event,))[0], (), now_ms)
    if event.is_numbered and event.incarnation != position.inc:
        return Unobserved(Position(str(FIRST), inc=event.incarnation), (), now_ms, went_back=True)
    return Unobserved(position.behind((event,))[0], (), now_ms, went_back=True)


def write_position(keys: Keys, claim: Claim, position: Position) -> Plan[bool]:
    """Write a position, and renew the claim; False if another process has it."""
    (claimed, *_) = yield _keep(keys, claim, as_json(position))
    return bool(claimed)


def _keep(keys: Keys, claim: Claim, position: bytes = b"") -> ScriptCall:
    args = (claim.walker, claim.ttl_ms, OBSERVER, position)
    return ScriptCall("keep_position", (keys.repair_walker, keys.events_consumers), args)


def _parsed(text: str) -> Position | None:
    """Return a position that was written; None if there is none, or another hand wrote what cannot be read."""
    try:
        return Position.parse(text) if text else None
    except ValueError:
        return None
