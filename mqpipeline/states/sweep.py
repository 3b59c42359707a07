"""How long each of many topics was in each state, by window: one sweep over the instants at which something changes.

Plain arrays with numbers for topics and brokers, times in ms; nothing here knows of Spark. Sweeping takes memory by the
intervals and by topics x edges of windows, so topics are taken some at a time.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from mqpipeline.windows import Window

Numbers = npt.NDArray[np.int64]
Amounts = npt.NDArray[np.float64]
UP, DOWN, UNKNOWN, PLANNED, NONE = range(5)
"""What a topic's state is where several pairs differ: the first of these."""
AT_ONCE = 1 << 16
"""Intervals and edges swept together; a topic that has more is swept alone."""


class Windows(NamedTuple):
    """Windows by the edges they have among them, ascending; `first` and `last` are where each begins and ends."""

    edges: Numbers
    first: Numbers
    last: Numbers

    @classmethod
    def of(cls, windows: Sequence[Window]) -> Self:
        begins, ends = (np.array([window[i] for window in windows], np.int64) for i in (1, 2))
        edges = np.unique(np.concatenate([begins, ends]))
        return cls(edges, np.searchsorted(edges, begins), np.searchsorted(edges, ends))

    def place(self, unit: Numbers, at_ms: Numbers) -> Numbers:
        """Orders instants between the first edge and the last by unit, then by time."""
        begin, end = self.edges[0], self.edges[-1]
        return np.asarray(unit * (end - begin + 1) + at_ms - begin)


class Timelines(NamedTuple):
    """States of brokers, in order of broker and time: intervals that do not overlap."""

    broker: Numbers
    state: Numbers
    from_ms: Numbers
    to_ms: Numbers


class Versions(NamedTuple):
    """When a pair of `topic` and `broker` was in force, in any order."""

    topic: Numbers
    broker: Numbers
    queues: Numbers
    from_ms: Numbers
    to_ms: Numbers


class PairStates(NamedTuple):
    """States of pairs while they are in force."""

    topic: Numbers
    state: Numbers
    queues: Numbers
    from_ms: Numbers
    to_ms: Numbers


class Totals(NamedTuple):
    """A row for each topic and window (its index) in which the topic has a state. `up`, `down`, `planned` in
    ms, `up_weight` and `down_weight` in queue-ms; `outages` overlap the window."""

    topic: Numbers
    window: Numbers
    up: Numbers
    down: Numbers
    planned: Numbers
    outages: Numbers
    up_weight: Amounts
    down_weight: Amounts


def time_in(
    versions: Versions, timelines: Timelines, windows: Windows, at_once: int = AT_ONCE
) -> Iterator[Totals]:
    """Totals of all topics, numbered from 0 on. No time may lie beyond the windows' edges."""
    order = np.argsort(versions.topic, kind="stable")
    versions = Versions(*(column[order] for column in versions))
    first, last = _met(versions, timelines, windows)
    sizes = np.bincount(versions.topic, last - first) + len(windows.edges)
    begins = np.flatnonzero(np.diff(np.cumsum(sizes) // at_once, prepend=-1))
    for begin, end in pairwise([*begins, len(sizes)]):
        rows = slice(*np.searchsorted(versions.topic, (begin, end)))
        some = Versions(versions.topic[rows] - begin, *(column[rows] for column in versions[1:]))
        totals = swept(_pair_states(some, timelines, first[rows], last[rows]), end - begin, windows)
        yield totals._replace(topic=totals.topic + begin)


def swept(pair_states: PairStates, topics: int, windows: Windows) -> Totals:
    """Totals of this many topics, of their pairs' states.

    The windows' edges are instants of every topic, so what lies between two of them is a run of instants."""
    edges = windows.place(np.arange(topics)[:, None], windows.edges).ravel()
    begins, ends = (
        windows.place(pair_states.topic, at_ms) for at_ms in (pair_states.from_ms, pair_states.to_ms)
    )
    places = np.concatenate([begins, ends, edges])
    order = np.argsort(places)
    places = places[order]
    latest = np.flatnonzero(np.diff(places, append=-1))  # at each instant, with all that begins and ends then
    kind = np.concatenate([pair_states.state, pair_states.state, np.full(len(edges), NONE)])[order]
    nothing = np.zeros(len(edges), np.int64)

    def running(amount: Numbers, state: int) -> Numbers:
        steps = np.concatenate([amount, -amount, nothing])[order]
        return np.cumsum(np.where(kind == state, steps, 0))[latest]

    ones = np.ones(len(pair_states.state), np.int64)
    up, down, unknown, planned = (running(ones, state) > 0 for state in (UP, DOWN, UNKNOWN, PLANNED))
    any_state = up | down | unknown | planned
    down &= ~up
    planned &= ~(up | down | unknown)
    fails = down & ~np.concatenate([[False], down[:-1]])
    places = places[latest]
    lasting = np.diff(places, append=places[-1])
    at_edges = np.searchsorted(places, edges)

    def by_window(amounts: Any) -> Any:
        """Return the sum of amounts at instants in each window, by topic."""
        between = np.add.reduceat(amounts, at_edges).reshape(topics, -1)
        before = np.zeros_like(between)
        np.cumsum(between[:, :-1], axis=1, out=before[:, 1:])
        return before[:, windows.last] - before[:, windows.first]

    still_down = (down & ~fails)[at_edges].reshape(topics, -1)[:, windows.first]
    topic, window = np.nonzero(by_window(lasting * any_state))
    totals = (
        *(by_window(lasting * there) for there in (up, down, planned)),
        by_window(fails.astype(np.int64)) + still_down,
        *(by_window(lasting * running(pair_states.queues, state).astype(np.float64)) for state in (UP, DOWN)),
    )
    return Totals(topic, window, *(total[topic, window] for total in totals))


def _met(versions: Versions, timelines: Timelines, windows: Windows) -> tuple[Numbers, Numbers]:
    """Return for each version the first interval of its broker that it meets, and the one after the last."""
    first = np.searchsorted(
        windows.place(timelines.broker, timelines.to_ms),
        windows.place(versions.broker, versions.from_ms),
        side="right",
    )
    last = np.searchsorted(
        windows.place(timelines.broker, timelines.from_ms), windows.place(versions.broker, versions.to_ms)
    )
    return first, last


def _pair_states(versions: Versions, timelines: Timelines, first: Numbers, last: Numbers) -> PairStates:
    """Without write queues nothing weighs, and a broker that is there is not there for the topic."""
    met = last - first
    version = np.repeat(np.arange(len(met)), met)
    interval = np.arange(len(version)) + np.repeat(first - (np.cumsum(met) - met), met)
    state, queues = timelines.state[interval], np.maximum(versions.queues, 0)[version]
    return PairStates(
        versions.topic[version],
        np.where((state == UP) & (queues == 0), PLANNED, state),
        queues,
        np.maximum(versions.from_ms[version], timelines.from_ms[interval]),
        np.minimum(versions.to_ms[version], timelines.to_ms[interval]),
    )
