"""Changes of topics counted in arrays: as one would count them one by one."""

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from mqpipeline.codes import Numbers
from mqpipeline.reports import held
from mqpipeline.reports.held import BrokerChanges, Held, Named, changes
from mqpipeline.windows import Window

Row = tuple[int, ...]
Rows = Sequence[Row]
OF = (Window("day", 100, 200), Window("day", 200, 300), Window("month", 100, 300), Window("1h", 290, 300))


def counted(broker_changes: Rows, holding: Rows, named: Rows, of: tuple[Window, ...] = OF) -> dict[Row, int]:
    """By topic and window."""

    def columns(rows: Rows, width: int) -> list[Numbers]:
        return [np.array([row[i] for row in rows], np.int64) for i in range(width)]

    reported = changes(
        BrokerChanges(*columns(broker_changes, 3)), Held(*columns(holding, 4)), Named(*columns(named, 2)), of
    )
    listed = [row for some in reported for row in zip(*(column.tolist() for column in some), strict=True)]
    assert len({row[:2] for row in listed}) == len(listed)
    return {row[:2]: row[2] for row in listed}


EVER = (1 << 63) - 1
FIRST, SECOND, BOTH, LAST = range(4)
CASES: dict[str, tuple[Rows, Rows, Rows, dict[Row, int]]] = {
    "nothing": ([], [], [], {}),
    "nothing changed": ([], [(0, 0, 0, EVER)], [], {}),
    "held all the time": (
        [(0, 150, 2), (0, 299, 1)],
        [(0, 0, -50, EVER)],
        [],
        {(0, FIRST): 2, (0, SECOND): 1, (0, BOTH): 3, (0, LAST): 1},
    ),
    "of another broker": ([(1, 150, 2)], [(0, 0, 0, EVER)], [], {}),
    "held from then on": ([(0, 150, 1)], [(0, 0, 150, 151)], [], {(0, FIRST): 1, (0, BOTH): 1}),
    "no longer held": ([(0, 150, 1)], [(0, 0, 100, 150)], [], {}),
    "at the edges of windows": (
        [(0, 99, 1), (0, 100, 1), (0, 200, 1), (0, 300, 1)],
        [(0, 0, 0, EVER)],
        [],
        {(0, FIRST): 1, (0, SECOND): 1, (0, BOTH): 2},
    ),
    "by two brokers": (
        [(0, 150, 1), (1, 150, 1)],
        [(0, 0, 0, EVER), (0, 1, 0, 160)],
        [],
        {(0, FIRST): 2, (0, BOTH): 2},
    ),
    "named": ([], [], [(0, 99), (0, 150), (3, 300)], {(0, FIRST): 1, (0, BOTH): 1}),
    "named and held": (
        [(0, 150, 1)],
        [(1, 0, 0, EVER)],
        [(1, 150), (1, 150)],
        {(1, FIRST): 3, (1, BOTH): 3},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    broker_changes, holding, named, expected = CASES[name]
    assert counted(broker_changes, holding, named) == expected


@pytest.mark.parametrize("seed", range(10))
def test_as_counted_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "TOPICS_AT_ONCE", 3)
    dice = random.Random(seed)
    broker_changes = [(dice.randrange(4), dice.randint(-20, 420), dice.randint(1, 3)) for _ in range(200)]
    holding = []
    for topic in range(10):
        for broker in dice.sample(range(5), 3):
            at = sorted(dice.sample(range(-50, 450), 8))
            holding += [(topic, broker, *at[i : i + 2]) for i in range(7) if dice.random() < 0.7]
    named = [(dice.randrange(12), dice.randint(-20, 420)) for _ in range(100)]
    of = (*OF, Window("7d", 0, 250), Window("day", 350, 400))
    dice.shuffle(holding)
    expected: Counter[Row] = Counter()
    for place, (_, begin, end) in enumerate(of):
        for topic, broker, since, until in holding:
            many = sum(
                n for b, at, n in broker_changes if b == broker and max(begin, since) <= at < min(end, until)
            )
            expected[topic, place] += many
        expected.update((topic, place) for topic, at in named if begin <= at < end)
    assert counted(broker_changes, holding, named, of) == +expected
