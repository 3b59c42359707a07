"""How long outages last."""

import random
from fractions import Fraction
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqpipeline.reports.repair import repair
from tests.mqpipeline.reports import example
from tests.mqpipeline.reports.literal import Reported, cases, reported, state, states_frame, window

END = 10_000
Outage = tuple[float, bool]


def _outages(*lasted: float | None, then: str = "UP") -> list[dict[str, Any]]:
    """Of broker a, one after the other from 0 on; None: open at the end."""
    rows, at = [state("a", "UP", -10, 0)], 0.0
    for length in lasted:
        end = END if length is None else at + length
        rows.append(state("a", "DOWN", at, end))
        if length is not None:
            rows.append(state("a", then, end, end + 1))
            at = end + 1
    return rows


CASES = {
    "half of them": (_outages(1, 2, 3, 4), (4, 0, 2000, 4000, 4000)),
    "nine of ten": (_outages(*range(1, 11)), (10, 0, 5000, 9000, 10_000)),
    "equal ones": (_outages(5, 5, 5, 7), (4, 0, 5000, 7000, 7000)),
    "an open one may last longer than any": (_outages(3, None), (2, 1, 3000, None, None)),
    "only an open one": (_outages(None), (1, 1, None, None, None)),
    "an open one was at risk before": (
        [*_outages(1, 2), state("a", "DOWN", END - 1.5, END)],
        (3, 1, 2000, 2000, 2000),
    ),
    "open as long as a repair took": (
        [*_outages(2), state("a", "DOWN", END - 2, END)],
        (2, 1, 2000, None, None),
    ),
    "retired is not repaired, though it comes back": (
        [*_outages(4, then="DOWN")[:2], state("a", "UP", 9, 20)],
        (1, 1, None, None, None),
    ),
    "no longer counted is not repaired": (_outages(4, then="UNKNOWN"), (1, 1, None, None, None)),
    "begun as the window begins": (
        [state("a", "DOWN", 0, 5), state("a", "UP", 5, 6)],
        (1, 0, 5000, 5000, 5000),
    ),
    "begun before the window": ([state("a", "DOWN", -1, 5), state("a", "UP", 5, 6)], None),
    "begun as the window ends": ([state("a", "UP", -10, END), state("a", "DOWN", END, END + 1)], None),
    "planned is no outage": ([state("a", "PLANNED", 1, 5), state("a", "UP", 5, 6)], None),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Reported:
    rows = cases({name: rows for name, (rows, _) in CASES.items()} | {"example": example.STATES})
    windows = [window(0, END, "day"), example.WINDOW]
    report = repair(states_frame(spark, rows), windows, END * 1000)
    return reported(report, "outages", "n_open", "p50_ms", "p90_ms", "p95_ms", "provisional")


@pytest.mark.parametrize("name", CASES)
def test_repair_time(name: str, found: Reported) -> None:
    of_broker, of_cluster = (
        found.get((name, "day", unit), (None,))[:-1] for unit in ("broker:c1:a", "cluster:c1")
    )
    assert of_broker == of_cluster == (CASES[name][1] or ())


def test_the_worked_example(found: Reported) -> None:
    """60, 480, 300 so far."""
    assert found["example", "1h", "cluster:c1"][:3] == (3, 1, 480_000)
    assert found["example", "1h", "broker:c1:a"][:3] == (2, 0, 60_000)
    assert found["example", "1h", "broker:c1:c"][:3] == (1, 1, None)


def test_a_window_is_provisional_while_an_expiry_in_it_may_yet_be_recorded(found: Reported) -> None:
    assert found["example", "day", "cluster:c1"][-1] is True
    assert found["example", "1h", "cluster:c1"][-1] is False


def test_as_the_textbook_has_it(spark: SparkSession) -> None:
    """Against fractions, and without open ones against the nearest rank."""
    chance = random.Random(6)
    samples = {
        f"sample {i}": [
            (float(chance.randint(1, 12)), i % 4 != 0 and chance.random() < 0.3)
            for _ in range(chance.randint(1, 30))
        ]
        for i in range(120)
    }
    rows = cases({name: _alone(sample) for name, sample in samples.items()})
    found = reported(repair(states_frame(spark, rows), [window(0, END)], END), "p50_ms", "p90_ms", "p95_ms")
    for name, sample in samples.items():
        expected = tuple(_kaplan_meier(sample, Fraction(q)) for q in ("0.5", "0.9", "0.95"))
        assert found[name, "1h", "cluster:c1"] == expected, sample
        if not any(still_open for _, still_open in sample):
            lengths = sorted(length for length, _ in sample)
            assert expected[1] == 1000 * lengths[-(-9 * len(lengths) // 10) - 1]


def _alone(sample: list[Outage]) -> list[dict[str, Any]]:
    """Each outage of a broker of its own; what ends an open one is of no account."""
    return [
        row
        for i, (length, still_open) in enumerate(sample)
        for row in (
            state(f"b{i}", "DOWN", 0, length),
            state(f"b{i}", "PLANNED" if still_open else "UP", length, END),
        )
    ]


def _kaplan_meier(sample: list[Outage], q: Fraction) -> float | None:
    survival = Fraction(1)
    for length in sorted({length for length, _ in sample}):
        at_risk = sum(other >= length for other, _ in sample)
        survival *= 1 - Fraction(sample.count((length, False)), at_risk)
        if survival <= 1 - q:
            return 1000 * length
    return None
