"""The search for an order in which all operations on one place make sense: complete, and quick if few writes overlap.

Input are windows: each operation takes effect at one moment between `opens` and `closes`. Time is swept once. What
could be so at a moment is a set of configurations: the value, which of the open writes have taken effect, and which
readers still wait for a value to come. A write takes effect no sooner than something needs it: when it closes, or
when a read closes that has not seen its value (just-in-time linearization, G. Lowe, "Testing for linearizability",
2017). A read takes effect as soon as its value is there, because that never stands in the way of anything else.
A write that may never have taken effect is tried both ways when it closes.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

ABSENT: Final = -1
NO_WRITE: Final = -1
WIDEST: Final = 20_000  # configurations at one moment


class Write(msgspec.Struct, frozen=True):
    """Sets a value, removes those it is meant for, or brings back what one of `restores` wrote with its lease
    (NO_WRITE: nothing; else a lease that cannot end before this closes); `required` unless it may never take effect.

    The value's lease ends by itself, and the value with it, at one moment between `lapses_from` and `lapses_until`,
    unless another write comes before."""

    opens: float
    closes: float
    required: bool = True
    sets: int | None = None
    removes: Collection[int] = ()
    restores: Collection[int] = ()
    lapses_from: float = math.inf
    lapses_until: float = math.inf


class Read(msgspec.Struct, frozen=True):
    """Saw one of the values that it `accepts`. Reads of one session take effect in their order.

    `after` is a write (its place in the list) that took effect before, NO_WRITE for none."""

    opens: float
    closes: float
    accepts: Collection[int]
    session: int
    after: int = NO_WRITE


class Impossible(msgspec.Struct, frozen=True):
    """No order explains that read (its place in the list), which closed `at`; `possible` are the values, and the
    writes that hold their leases, just before.

    Only a read can be impossible: a write or the end of a lease can always take effect."""

    read: int
    at: float
    possible: tuple[tuple[int, int], ...]


class TooWide(RuntimeError):
    """So many writes overlap that the search was given up, without a result."""


class _Configuration(msgspec.Struct, frozen=True):
    """`holder` is the write whose lease it is; `done` are the open writes that have taken effect; `behind` is, for
    a session, the first of its open reads that has not."""

    value: int
    holder: int
    done: frozenset[int]
    behind: Mapping[int, int]


Goal: TypeAlias = Callable[[_Configuration], bool]
START = _Configuration(ABSENT, NO_WRITE, frozenset(), {})
WRITE_OPENS, LEASE_MAY_END, READ_OPENS, READ_CLOSES, WRITE_CLOSES, LEASE_HAS_ENDED = range(6)


def impossible(writes: Sequence[Write], reads: Sequence[Read]) -> Impossible | None:
    """Return the first read that no order explains, None when there is an order. Raises TooWide.

    The reads of a session must be given in their order."""
    return _Search(writes, reads).run()


class _Search:
    def __init__(self, writes: Sequence[Write], reads: Sequence[Read]) -> None:
        self._writes, self._reads = writes, reads
        self._open: list[int] = []
        self._lapsing: set[int] = set()
        self._first: dict[int, float] = {}
        for write in writes:
            for value in self._brought(write):
                self._first[value] = min(write.opens, self._first.get(value, math.inf))
        self._rank = [0] * len(reads)  # of a read in its session
        self._sessions: dict[int, list[int]] = {}
        for index, read in enumerate(reads):
            own = self._sessions.setdefault(read.session, [])
            self._rank[index] = len(own)
            own.append(index)
        self._opened = dict.fromkeys(self._sessions, 0)

    def run(self) -> Impossible | None:
        configurations = [START]
        for at, what, index in sorted(self._moments()):
            if what == WRITE_OPENS:
                insort(self._open, index)
            elif what == LEASE_MAY_END:
                self._lapsing.add(index)
            elif what == READ_OPENS:
                configurations = self._begun(configurations, index)
            else:
                before = configurations
                configurations = self._through(before, self._goal(what, index))
                if not configurations:
                    possible = sorted(
                        {(configuration.value, configuration.holder) for configuration in before}
                    )
                    return Impossible(index, at, tuple(possible))
                if what == WRITE_CLOSES:
                    without = [] if self._writes[index].required else before
                    configurations = self._closed((*configurations, *without), index)
        return None

    def _moments(self) -> Iterator[tuple[float, int, int]]:
        for index, write in enumerate(self._writes):
            yield write.opens, WRITE_OPENS, index
            yield write.closes, WRITE_CLOSES, index
            if write.lapses_from < math.inf:
                yield write.lapses_from, LEASE_MAY_END, index
            if write.lapses_until < math.inf:
                yield write.lapses_until, LEASE_HAS_ENDED, index
        for own in self._sessions.values():
            opens = -math.inf
            for index in own:
                read = self._reads[index]
                opens = max(opens, read.opens, min(self._there_from(read.accepts), read.closes))
                if read.after != NO_WRITE:
                    opens = max(opens, self._writes[read.after].opens)
                yield opens, READ_OPENS, index
                yield max(opens, read.closes), READ_CLOSES, index

    def _there_from(self, accepted: Collection[int]) -> float:
        """Return when the first of these values may be there; before, a read that accepts only these need not wait."""
        return min((self._first.get(value, -math.inf) for value in accepted), default=-math.inf)

    def _goal(self, what: int, index: int) -> Goal:
        if what == READ_CLOSES:
            session, rank = self._reads[index].session, self._rank[index]
            return lambda configuration: configuration.behind.get(session, rank + 1) > rank
        if what == LEASE_HAS_ENDED:
            return lambda configuration: configuration.holder != index
        return lambda configuration: index in configuration.done

    def _begun(self, configurations: list[_Configuration], index: int) -> list[_Configuration]:
        read, rank = self._reads[index], self._rank[index]
        session = read.session
        self._opened[session] = rank + 1
        after = read.after if read.after in self._open else NO_WRITE
        if all(
            session in configuration.behind
            or (configuration.value in read.accepts and (after < 0 or after in configuration.done))
            for configuration in configurations
        ):
            return configurations
        changed = []
        for configuration in configurations:
            sees = configuration.value in read.accepts and (after < 0 or after in configuration.done)
            if session not in configuration.behind and not sees:
                configuration = _Configuration(
                    configuration.value,
                    configuration.holder,
                    configuration.done,
                    {**configuration.behind, session: rank},
                )
            changed.append(configuration)
        return changed

    def _closed(self, configurations: Iterable[_Configuration], index: int) -> list[_Configuration]:
        self._open.remove(index)
        front = _Front(self._writes)
        for configuration in configurations:
            done = configuration.done - {index} if index in configuration.done else configuration.done
            front.add(_Configuration(configuration.value, configuration.holder, done, configuration.behind))
        return list(front)

    def _through(self, configurations: list[_Configuration], goal: Goal) -> list[_Configuration]:
        """Return the configurations in which the goal is reached, with the fewest writes done."""
        if all(map(goal, configurations)):
            return configurations
        reached, met = _Front(self._writes), _Front(self._writes)
        for configuration in configurations:
            if goal(configuration):
                reached.add(configuration)
        waiting = deque(
            configuration
            for configuration in configurations
            if not goal(configuration) and met.add(configuration)
        )
        while waiting:
            for configuration in self._next(waiting.popleft()):
                if goal(configuration):
                    reached.add(configuration)
                elif met.add(configuration):
                    waiting.append(configuration)
            if len(met) + len(reached) > WIDEST:
                raise TooWide(f"more than {WIDEST} possibilities with {len(self._open)} writes open")
        return list(reached)

    def _next(self, configuration: _Configuration) -> Iterator[_Configuration]:
        for index in self._open:
            if index not in configuration.done:
                write = self._writes[index]
                done = configuration.done | {index}
                for other in write.restores:
                    yield self._seen(self._value(other), other, done, configuration.behind)
                if write.sets is not None:
                    yield self._seen(write.sets, index, done, configuration.behind)
                elif configuration.value in write.removes:
                    yield self._seen(ABSENT, NO_WRITE, done, configuration.behind)
                else:
                    yield self._seen(configuration.value, configuration.holder, done, configuration.behind)
        if configuration.holder in self._lapsing:
            yield self._seen(ABSENT, NO_WRITE, configuration.done, configuration.behind)

    def _brought(self, write: Write) -> set[int]:
        """Return the values that may be there by this write."""
        restored = {self._value(other) for other in write.restores}
        return (restored if write.sets is None else restored | {write.sets}) - {ABSENT}

    def _value(self, write: int) -> int:
        sets = None if write == NO_WRITE else self._writes[write].sets
        return ABSENT if sets is None else sets

    def _seen(
        self, value: int, holder: int, done: frozenset[int], behind: Mapping[int, int]
    ) -> _Configuration:
        """Return the configuration in which all reads that can have taken effect."""
        still = {}
        for session, rank in behind.items():
            own, opened = self._sessions[session], self._opened[session]
            while rank < opened:
                read = self._reads[own[rank]]
                waits = read.after in self._open and read.after not in done
                if value not in read.accepts or waits:
                    still[session] = rank
                    break
                rank += 1
        return _Configuration(value, holder, done, still)


class _Front:
    """Configurations of which none is at least as good as another: with the same value and the same required writes
    done, no more of the optional ones used, and no reader further behind."""

    def __init__(self, writes: Sequence[Write]) -> None:
        self._writes = writes
        self._alike: dict[tuple[int, int, frozenset[int]], list[tuple[frozenset[int], _Configuration]]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[_Configuration]:
        return (configuration for alike in self._alike.values() for _, configuration in alike)

    def add(self, new: _Configuration) -> bool:
        """Add a configuration unless another is at least as good; return whether it was added."""
        required = frozenset(index for index in new.done if self._writes[index].required)
        optional = new.done - required
        alike = self._alike.setdefault((new.value, new.holder, required), [])
        if any(used <= optional and _no_further_behind(configuration, new) for used, configuration in alike):
            return False
        worse = [pair for pair in alike if optional <= pair[0] and _no_further_behind(new, pair[1])]
        for pair in worse:
            alike.remove(pair)
        alike.append((optional, new))
        self._size += 1 - len(worse)
        return True


def _no_further_behind(configuration: _Configuration, other: _Configuration) -> bool:
    return all(
        session in other.behind and rank >= other.behind[session]
        for session, rank in configuration.behind.items()
    )
