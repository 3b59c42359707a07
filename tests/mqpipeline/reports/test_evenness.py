"""Against the definitions, said in plain Python."""

import random

import numpy as np
import pytest

from mqpipeline.reports.evenness import evenness

Found = tuple[int, float, float]


def by_group(members: list[tuple[int, int]]) -> dict[int, Found]:
    found = evenness(*(np.array(column, np.int64) for column in zip(*members, strict=True)))
    return {
        group: tuple(reported)
        for group, *reported in zip(*(column.tolist() for column in found), strict=True)
    }


@pytest.mark.parametrize("greatest", [3, 1_000, 2**31 - 1, 2**62])
def test_groups_of_any_size_and_order(greatest: int) -> None:
    chance = random.Random(greatest)
    shares = {group: [chance.randrange(greatest) for _ in range(1 + group % 9)] for group in range(3, 80, 2)}
    members = [(group, amount) for group, amounts in shares.items() for amount in amounts]
    chance.shuffle(members)
    found = by_group(members)
    assert found.keys() == shares.keys()
    for group, amounts in shares.items():
        total, n = sum(amounts), len(amounts)
        apart = sum(abs(x - y) for x in amounts for y in amounts)
        expected = (max(amounts) * n / total, apart / (2 * n * total)) if total else (np.nan, np.nan)
        assert found[group] == (n, *(pytest.approx(ratio, nan_ok=True) for ratio in expected))


def test_nothing_to_share() -> None:
    n, *ratios = by_group([(5, 0), (5, 0), (6, 7)])[5]
    assert n == 2
    assert np.isnan(ratios).all()
