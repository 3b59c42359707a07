"""Random histories: the tables tell what was answered, at any instant and between any two."""

import random

import pytest
from msgspec.structs import asdict
from pyspark.sql import SparkSession

from mqpipeline.history.diff import diff
from mqpipeline.history.routes import Shown, routes_at
from mqpipeline.history.tables import Tables
from tests.mqpipeline.history.example import tables
from tests.mqpipeline.history.simulation import Answers, Simulation

INSTANTS = 3


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return Simulation(seed=20).run(steps=600)


@pytest.fixture(scope="module")
def history(spark: SparkSession, simulation: Simulation) -> Tables:
    return tables(spark, simulation.sessions, simulation.brokers, simulation.versions)


def reported_at(history: Tables, instant: int) -> Answers:
    rows = [*routes_at(history, instant, acting_master=True)]
    reported = {(row.topic, row.broker): asdict(row.shown) for row in rows}
    assert len(reported) == len(rows)
    return reported


def chosen(simulation: Simulation, seed: int, count: int) -> list[int]:
    """Instants at which something was answered, in order."""
    answering = [instant for instant, answers in simulation.answered.items() if answers]
    return sorted(random.Random(seed).sample(answering, count))


def test_routes_are_what_was_answered(history: Tables, simulation: Simulation) -> None:
    for instant in chosen(simulation, 1, INSTANTS):
        assert reported_at(history, instant) == simulation.answered[instant], instant


def test_a_lease_is_over_at_its_end_and_not_before(history: Tables, simulation: Simulation) -> None:
    ends = {
        row["end_ms"]
        for row in simulation.sessions
        if row["end_cause"] == "expired" and row["recorded_ms"] > row["end_ms"]
    }
    late = sorted(
        end
        for end in ends & simulation.answered.keys()
        if end - 1 in simulation.answered and simulation.answered[end - 1] != simulation.answered[end]
    )
    assert len(late) > 3
    for end in late[:2]:
        assert reported_at(history, end - 1) == simulation.answered[end - 1]
        assert reported_at(history, end) == simulation.answered[end]


def test_the_difference_leads_from_one_to_the_other(history: Tables, simulation: Simulation) -> None:
    first, second, third = chosen(simulation, 2, 3)
    for from_ms, to_ms in ((first, second), (second, third), (third - 40, third)):
        before = simulation.answered.get(from_ms) or reported_at(history, from_ms)
        after = simulation.answered[to_ms]
        found = [*diff(history, from_ms, to_ms, acting_master=True)]
        rows = {(row.topic, row.broker): row for row in found}
        assert len(rows) == len(found)
        differing = {pair for pair in before.keys() | after.keys() if before.get(pair) != after.get(pair)}
        assert rows.keys() == differing
        for pair, row in rows.items():
            was, now = before.get(pair), after.get(pair)
            assert (row.before and asdict(row.before)) == was
            assert (row.after and asdict(row.after)) == now
            assert row.change == ("added" if was is None else "removed" if now is None else "changed")
            fields = [name for name in Shown.__struct_fields__ if was and now and was[name] != now[name]]
            assert [*row.fields] == fields
            assert row.by, row
            assert from_ms < row.by.ms <= to_ms, row
