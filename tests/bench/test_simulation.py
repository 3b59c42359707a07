"""The simulation: what it tells the model, and what it counts."""

import argparse

import pytest

from bench import simulation
from mqnamesrv.size import load_of


def test_what_the_simulation_tells_the_model() -> None:
    given = argparse.Namespace(agents=100, topics=50, connections=3_000, workers=6)
    assert simulation.deployment(given).workers == 6
    load = load_of(simulation.deployment(given))
    assert len(list(simulation.topic_names(given))) == 500
    assert load.table == pytest.approx(50)
    assert load.pairs == pytest.approx(120 * 50)  # of the brokers that change topics, too
    assert load.cluster_infos == pytest.approx(100 / 5)
    assert load.lookups == pytest.approx(3_000 * 2 / 30)
    assert load.connections == 3_120
