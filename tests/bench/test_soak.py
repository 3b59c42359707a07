"""The soak's verdict, on made-up samples: what grows is named, and a process that did not stay."""

import pytest

from bench.soak import FDS, KEYS, MEMORY, RSS, Quantity, Sample, judged

WORKER = "worker 17"


def sampled(quantity: Quantity, figures: list[float]) -> list[Sample]:
    return [{(WORKER, quantity): figure * quantity.factor} for figure in figures]


@pytest.mark.parametrize("quantity", [RSS, FDS, MEMORY, KEYS])
def test_what_rises_all_the_time_grows(quantity: Quantity) -> None:
    rows, _ = judged(sampled(quantity, [100.0 + number for number in range(100)]))
    assert [(row.before, row.after, row.grows) for row in rows] == [(137.0, 187.0, True)]


@pytest.mark.parametrize("quantity", [RSS, FDS, MEMORY, KEYS])
def test_what_fills_at_first_and_then_stays_level_is_flat(quantity: Quantity) -> None:
    rows, gone = judged(sampled(quantity, [*range(25), *(100.0 + number % 3 for number in range(75))]))
    assert [row.grows for row in rows] == [False]
    assert gone == []


@pytest.mark.parametrize("missing", [0, 50, 99])
def test_a_process_that_was_not_there_all_the_time_is_named(missing: int) -> None:
    samples = sampled(RSS, [100.0] * 100)
    samples[missing] = {("Redis", KEYS): 1.0}
    assert judged(samples)[1][-1] == WORKER
