"""How often what a topic is held by changed, in each window: numbers in arrays, and no text."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from mqpipeline.codes import Numbers
from mqpipeline.windows import Window

TOPICS_AT_ONCE = 256
"""Their counts by cell are a table in memory."""


class BrokerChanges(NamedTuple):
    """So `many` changes `at_ms` of a `broker` as a whole, in any order."""

    broker: Numbers
    at_ms: Numbers
    many: Numbers


class Held(NamedTuple):
    """A `broker` held a `topic` (a number from 0 on) in [from_ms, to_ms), in any order."""

    topic: Numbers
    broker: Numbers
    from_ms: Numbers
    to_ms: Numbers


class Named(NamedTuple):
    """A change `at_ms` named a `topic`, in any order."""

    topic: Numbers
    at_ms: Numbers


class Counts(NamedTuple):
    """`changes` of a `topic` in a `window` (its place among them), where there were any."""

    topic: Numbers
    window: Numbers
    changes: Numbers


def changes(
    broker_changes: BrokerChanges, held: Held, named: Named, windows: Sequence[Window]
) -> Iterator[Counts]:
    """Yield for each topic the changes that named it and those of brokers that had it then, some topics at a time."""
    edges = np.unique([edge for window in windows for edge in (window.from_ms, window.to_ms)])
    begin, end = (np.searchsorted(edges, [window[i] for window in windows]) for i in (1, 2))
    numbered = _Numbered.of(broker_changes, edges)
    first, last = (numbered.before(held.broker, at_ms) for at_ms in (held.from_ms, held.to_ms))
    met = np.flatnonzero(first < last)
    met = met[np.argsort(held.topic[met], kind="stable")]
    seen = np.flatnonzero((named.at_ms >= edges[0]) & (named.at_ms < edges[-1]))
    seen = seen[np.argsort(named.topic[seen], kind="stable")]
    of_met, of_seen = held.topic[met], named.topic[seen]
    for topic in range(0, max(of_met.max(initial=-1), of_seen.max(initial=-1)) + 1, TOPICS_AT_ONCE):
        some = met[slice(*np.searchsorted(of_met, (topic, topic + TOPICS_AT_ONCE)))]
        which, cell, count = numbered.by_cell(first[some], last[some])
        in_block = seen[slice(*np.searchsorted(of_seen, (topic, topic + TOPICS_AT_ONCE)))]
        row = np.append(held.topic[some][which], named.topic[in_block]) - topic
        column = np.append(cell, _cell(edges, named.at_ms[in_block]))
        counts = np.append(count, np.ones(len(in_block), np.int64))
        table = np.zeros(
            (TOPICS_AT_ONCE, len(edges)), np.int64
        )  # a cell's changes are in the column of its end
        np.add.at(table, (row, column + 1), counts)
        until = table.cumsum(axis=1)
        changes_in = until[:, end] - until[:, begin]
        rows, window = np.nonzero(changes_in)
        yield Counts(rows + topic, window, changes_in[rows, window])


class _Numbered(NamedTuple):
    """The operations within `edges` in order, so that those of a broker in an interval are a range. `key` is of broker
    and time; `total` how many changes come before each operation, and in all. The operations of a broker in a cell of
    time are a range too: `cell`, `start` and `stop` are of these, and `lies` is the cell of each operation."""

    edges: Numbers
    key: Numbers
    total: Numbers
    lies: Numbers
    cell: Numbers
    start: Numbers
    stop: Numbers

    @classmethod
    def of(cls, broker_changes: BrokerChanges, edges: Numbers) -> Self:
        inside = np.flatnonzero((broker_changes.at_ms >= edges[0]) & (broker_changes.at_ms < edges[-1]))
        key = _key(edges, broker_changes.broker[inside], broker_changes.at_ms[inside])
        order = np.argsort(key, kind="stable")
        key, inside = key[order], inside[order]
        cell = _cell(edges, broker_changes.at_ms[inside])
        another = np.diff(broker_changes.broker[inside] * len(edges) + cell, prepend=-1) != 0
        start = np.flatnonzero(another)
        return cls(
            edges=edges,
            key=key,
            total=np.append(0, np.cumsum(broker_changes.many[inside])),
            lies=np.cumsum(another) - 1,
            cell=cell[start],
            start=start,
            stop=np.append(start[1:], len(inside)),
        )

    def before(self, broker: Numbers, at_ms: Numbers) -> Numbers:
        """The first operation of each broker at that time or later."""
        return np.asarray(np.searchsorted(self.key, _key(self.edges, broker, at_ms)))

    def by_cell(self, first: Numbers, last: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Cut ranges of operations, of which none is empty, by cell: which range, the cell, how many changes."""
        low, high = self.lies[first], self.lies[last - 1]
        many = high - low + 1
        which = np.repeat(np.arange(len(first)), many)
        group = np.arange(many.sum()) + np.repeat(low - np.cumsum(many) + many, many)
        stop, start = np.minimum(last[which], self.stop[group]), np.maximum(first[which], self.start[group])
        return which, self.cell[group], self.total[stop] - self.total[start]


def _key(edges: Numbers, broker: Numbers, at_ms: Numbers) -> Numbers:
    """Ascends with the broker, then with the time, as far as that is within the edges."""
    since = np.clip(at_ms, edges[0], edges[-1]) - edges[0]
    return np.asarray(broker * (edges[-1] - edges[0] + 1) + since)


def _cell(edges: Numbers, at_ms: Numbers) -> Numbers:
    return np.asarray(np.searchsorted(edges, at_ms, side="right") - 1)
