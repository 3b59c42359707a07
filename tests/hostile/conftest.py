"""One server with two workers and a store of its own, which knows broker-a; each test is watched."""

from collections.abc import Iterator

import pytest

from tests.harness.broker import A
from tests.harness.connection import Connection
from tests.harness.nameserver import NameServer
from tests.harness.transports import transport
from tests.hostile.attacker import Attacker
from tests.hostile.watch import Watch

__all__ = ["transport"]


@pytest.fixture(scope="session")
def server(transport: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServer]:
    server = NameServer(tmp_path_factory.mktemp("hostile"), {})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def watch(server: NameServer) -> Iterator[Watch]:
    """From before the test to after it."""
    broker = Connection(server.port)
    assert A.but(timeout_ms=600_000).register(broker).code == 0
    watch = Watch(server)
    yield watch
    watch.end()
    broker.close()


@pytest.fixture
def over(watch: Watch) -> Iterator[Attacker]:
    """A connection of somebody who means ill."""
    connection = Attacker(watch.server.port)
    yield connection
    connection.close()
