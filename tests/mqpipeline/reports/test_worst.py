"""Against a look at every instant."""

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from mqpipeline.reports.worst import NOWHERE, Stretches
from mqpipeline.windows import Window

Intervals = Sequence[tuple[str, int, int]]


def lowest(intervals: Intervals, windows: Sequence[Window], length: int) -> list[float | None]:
    """Of each window."""
    columns = zip(*intervals, strict=True)
    reported = Stretches.of(pa.table(list(map(pa.array, columns)), names=["state", "from_ms", "to_ms"]))
    begins, ends = (np.array([window[i] for window in windows]) for i in (1, 2))
    down = reported.most_down(begins, ends, length).tolist()
    return [None if most == NOWHERE else (length - most) / length for most in down]


CASES: dict[str, tuple[Intervals, Window, int, float | None]] = {
    "always up": ([("UP", 0, 100)], Window("w", 0, 100), 10, 1),
    "always down": ([("DOWN", 0, 100)], Window("w", 0, 100), 10, 0),
    "begins with an outage": (
        [("UP", 0, 50), ("DOWN", 50, 54), ("UP", 54, 100)],
        Window("w", 0, 100),
        10,
        0.6,
    ),
    "around two outages": (
        [("UP", 0, 50), ("DOWN", 50, 54), ("UP", 54, 58), ("DOWN", 58, 60), ("UP", 60, 100)],
        Window("w", 0, 100),
        10,
        0.4,
    ),
    "the window cuts the outage": (
        [("UP", 0, 50), ("DOWN", 50, 70), ("UP", 70, 100)],
        Window("w", 60, 100),
        20,
        0.5,
    ),
    "the window ends in it": ([("UP", 0, 50), ("DOWN", 50, 70)], Window("w", 0, 55), 10, 0.5),
    "as long as the window": ([("UP", 0, 50), ("DOWN", 50, 100)], Window("w", 0, 100), 100, 0.5),
    "longer than the window": ([("UP", 0, 100)], Window("w", 0, 100), 101, None),
    "not over gaps": ([("DOWN", 0, 8), ("UP", 20, 29)], Window("w", 0, 100), 10, None),
    "only without gaps": ([("DOWN", 0, 8), ("UP", 20, 30)], Window("w", 0, 100), 10, 1),
    "in any order": ([("UP", 54, 100), ("DOWN", 50, 54), ("UP", 0, 50)], Window("w", 0, 100), 10, 0.6),
    "nothing recorded in the window": ([("UP", 0, 50)], Window("w", 60, 100), 10, None),
}


@pytest.mark.parametrize("case", CASES)
def test_lowest(case: str) -> None:
    intervals, window, length, share = CASES[case]
    assert lowest(intervals, [window], length) == [share]


@pytest.mark.parametrize("seed", range(30))
def test_no_instant_is_worse(seed: int) -> None:
    chance = random.Random(seed)
    edges = sorted(chance.sample(range(200), 30))
    states = chance.choices(["UP", "DOWN", None], [5, 5, 1], k=len(edges))
    intervals = [
        (state, begin, end)
        for state, begin, end in zip(states, edges, edges[1:], strict=False)
        if state is not None
    ]
    at = {instant: state for state, begin, end in intervals for instant in range(begin, end)}
    windows = [Window("w", 0, 200), *(Window("w", *sorted(chance.sample(range(200), 2))) for _ in range(9))]
    for length in (1, 7, 40):
        expected = []
        for window in windows:
            starts = range(window.from_ms, window.to_ms - length + 1)
            whole = [s for s in starts if all(instant in at for instant in range(s, s + length))]
            shares = [sum(at[instant] == "UP" for instant in range(s, s + length)) / length for s in whole]
            expected.append(min(shares, default=None))
        assert lowest(intervals, windows, length) == expected
