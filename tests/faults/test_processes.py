"""Rows of the fault table in which processes of the service or of brokers end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from faults.fleet import Fleet
from faults.places import Place, plain
from faults.row import Row
from faults.trial import tried
from testbed.broker import Broker
from testbed.connection import Connection
from tests.faults.subset import BROKERS, CONNECTIONS, TIMEOUT_S, broken

pytestmark = [pytest.mark.timeout(TIMEOUT_S), pytest.mark.needs("redis-server")]


@pytest.mark.parametrize("name", ["worker-kill", "reload", "brokers-killed-50"])
def test_rows(name: str, tmp_path: Path) -> None:
    assert broken(name, tmp_path) == ()


@contextmanager
def unregistered_by_another_client(place: Place, fleet: Fleet) -> Iterator[None]:
    """Unregister a broker that is alive, as if the service had dropped it."""
    config = fleet.steady[0]
    over = Connection(place.server.port)
    victim = Broker(config.broker_name, 0, config.broker_addr, cluster=config.broker_cluster_name)
    assert victim.unregister(over).code == 0
    over.close()
    yield


def test_a_broker_that_goes_missing_is_noticed(tmp_path: Path) -> None:
    row = Row(name="planted", title="", place=plain, fault=unregistered_by_another_client)
    result = tried(row, tmp_path, brokers=BROKERS, java=False, connections=CONNECTIONS)
    (complaint,) = (promise for promise in result.broken if "wrong" in promise)
    assert "broker-000 is missing" in complaint
