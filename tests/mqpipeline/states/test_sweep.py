"""Sweeps against a look at every instant, and what instants cannot tell."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mqpipeline.states.sweep import (
    DOWN,
    NONE,
    PLANNED,
    UNKNOWN,
    UP,
    PairStates,
    Timelines,
    Totals,
    Versions,
    Windows,
    swept,
    time_in,
)
from mqpipeline.windows import DAY_MS, Window

Rows = Sequence[Sequence[int]]
END = 60


def columns(rows: Rows) -> list[Any]:
    return list(np.array(rows, np.int64).reshape(-1, 5).T)


def rows_of(totals: Totals) -> dict[tuple[int, int], tuple[float, ...]]:
    """By topic and window: what else there is of it."""
    rows = list(zip(*totals, strict=True))
    assert len({row[:2] for row in rows}) == len(rows), "a row is there twice"
    return {row[:2]: row[2:] for row in rows}


OUTAGES: dict[str, tuple[Rows, Sequence[int]]] = {
    "begun in the first": ([(0, DOWN, 1, 5, 8)], (1, 0, 1)),
    "begun before the second": ([(0, DOWN, 1, 5, 15)], (1, 1, 1)),
    "ends where the second begins": ([(0, DOWN, 1, 5, 10)], (1, 0, 1)),
    "begins where the second does": ([(0, DOWN, 1, 10, 12)], (0, 1, 1)),
    "begins where all end": ([(0, UP, 1, 0, 20), (0, DOWN, 1, 20, 30)], (0, 0, 0)),
    "two of a topic": ([(0, DOWN, 1, 1, 2), (0, DOWN, 1, 3, 4)], (2, 0, 2)),
    "one of two pairs that touch": ([(0, DOWN, 1, 1, 2), (0, DOWN, 1, 2, 4)], (1, 0, 1)),
    "one of two pairs that overlap": ([(0, DOWN, 1, 1, 5), (0, DOWN, 1, 2, 12)], (1, 1, 1)),
    "one that another pair ends and begins": ([(0, DOWN, 1, 0, 9), (0, UP, 1, 3, 4)], (2, 0, 2)),
    "none while another pair is up": ([(0, DOWN, 1, 2, 9), (0, UP, 1, 0, 20)], (0, 0, 0)),
}


@pytest.mark.parametrize("case", OUTAGES)
def test_outages_that_overlap_a_window(case: str) -> None:
    """The two halves of a time, and both together."""
    rows, outages = OUTAGES[case]
    of = [Window("w", 0, 10), Window("w", 10, 20), Window("both", 0, 20), Window("after", 20, 40)]
    found = rows_of(swept(PairStates(*columns(rows)), 1, Windows.of(of)))
    assert tuple(found.get((0, window), [0] * 4)[3] for window in range(3)) == outages


def test_weights() -> None:
    """Windows that overlap, one within an interval and one over several, and one in which nothing is recorded."""
    rows = [
        (0, UP, 4, 0, 100),
        (0, UP, 8, 0, 50),
        (0, DOWN, 8, 50, 100),
        (0, PLANNED, 2, 40, 60),
        (0, UNKNOWN, 2, 60, 70),
        (1, DOWN, 1, 90, 100),
    ]
    of = [Window("w", 0, 100), Window("w", 45, 55), Window("x", 45, 55), Window("y", 200, 300)]
    found = rows_of(swept(PairStates(*columns(rows)), 2, Windows.of(of)))
    assert {key: row[-2:] for key, row in found.items()} == {
        (0, 0): (800, 400),
        (0, 1): (80, 40),
        (0, 2): (80, 40),
        (1, 0): (0, 10),
    }


def test_as_many_queues_as_a_number_can_tell() -> None:
    """Any registration may say so; the sums pass what 64 bits hold."""
    most, year = 2**31 - 1, 365 * DAY_MS
    versions = Versions(*columns([(0, broker, most, 0, year) for broker in (0, 0, 0, 1)]))
    timelines = Timelines(*(np.array(column) for column in ([0, 1], [UP, DOWN], [0, 0], [year, year])))
    (totals,) = time_in(versions, timelines, Windows.of([Window("year", 0, year)]))
    assert totals.up_weight[0] / (totals.up_weight[0] + totals.down_weight[0]) == pytest.approx(0.75)


def test_no_topics() -> None:
    nothing = np.zeros(0, np.int64)
    assert not list(
        time_in(Versions(*[nothing] * 5), Timelines(*[nothing] * 4), Windows.of([Window("w", 0, 1)]))
    )


class History:
    """Versions of topics, and states of brokers that leave some time untold."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        edges = [sorted(chance.sample(range(END + 1), 8)) for _ in range(5)]
        self.states = [
            (broker, chance.choice((UP, DOWN, UNKNOWN, PLANNED)), begin, end)
            for broker, of in enumerate(edges)
            for begin, end in pairwise(of)
            if chance.random() < 0.8
        ]
        self.versions = [
            (
                topic,
                chance.randrange(5),
                chance.choice((-1, 0, 1, 4)),
                *sorted(chance.sample(range(END + 1), 2)),
            )
            for topic in range(40)
            for _ in range(chance.randint(1, 6))
        ]
        chance.shuffle(self.versions)
        self.windows = [Window("w", *sorted(chance.sample(range(END + 1), 2))) for _ in range(12)]
        self.windows.append(Window("whole", 0, END))

    def pairs_at(self, topic: int, t: int) -> list[tuple[int, int]]:
        """State and queues of those whose broker has a state."""
        return [
            (PLANNED if state == UP and queues <= 0 else state, max(queues, 0))
            for of, broker, queues, begin, end in self.versions
            if of == topic and begin <= t < end
            for known, state, since, until in self.states
            if known == broker and since <= t < until
        ]

    def expected(self) -> dict[tuple[int, int], tuple[float, ...]]:
        found: dict[tuple[int, int], tuple[float, ...]] = {}
        for topic in {version[0] for version in self.versions}:
            pairs = [self.pairs_at(topic, t) for t in range(END)]
            states = [min((state for state, _ in at), default=NONE) for at in pairs]
            for number, (_, begin, end) in enumerate(self.windows):
                seen = states[begin:end]
                failed = [a for a, b in zip([NONE, *seen], seen, strict=False) if b == DOWN != a]
                weights = [
                    sum(queues for at in pairs[begin:end] for state, queues in at if state == kind)
                    for kind in (UP, DOWN)
                ]
                if set(seen) != {NONE}:
                    times = map(seen.count, (UP, DOWN, PLANNED))
                    found[topic, number] = (*times, len(failed), *weights)
        return found


@pytest.mark.parametrize("at_once", [1, 100, 1_000_000])
@pytest.mark.parametrize("seed", range(3))
def test_every_instant(seed: int, at_once: int) -> None:
    """However many topics are swept together."""
    history = History(seed)
    timelines = Timelines(*(np.array(column) for column in zip(*history.states, strict=True)))
    windows = Windows.of(history.windows)
    found: dict[tuple[int, int], tuple[float, ...]] = {}
    rounds = list(time_in(Versions(*columns(history.versions)), timelines, windows, at_once))
    for totals in rounds:
        found |= rows_of(totals)
    assert found == history.expected()
    assert (len(rounds) == 1) == (at_once == 1_000_000)
    assert {kind for row in found.values() for kind, amount in enumerate(row) if amount} == set(range(6))
