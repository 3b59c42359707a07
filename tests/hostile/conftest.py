"""One server with two workers, its own store and broker-a registered; each test runs under a Watch."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mqnamesrv.store import EmbeddedStore
from testbed.broker import A
from testbed.connection import Connection
from testbed.nameserver import NameServer
from testbed.transports import transport
from tests.hostile.attacker import Attacker
from tests.hostile.watch import Watch

__all__ = ["transport"]


@pytest.fixture(scope="package")
def server(transport: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServer]:
    folder = tmp_path_factory.mktemp("hostile")
    store = EmbeddedStore(folder / "store", keep=False)
    store.start()
    server = NameServer(folder, {"proxyTrustedCidrs": "10.0.0.0/8"}, url=store.url)
    server.start()
    yield server
    server.stop()
    store.stop()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    """Yield a store for a test with a server of its own."""
    store = EmbeddedStore(tmp_path / "store", keep=False)
    store.start()
    yield store
    store.stop()


@pytest.fixture
def watch(server: NameServer) -> Iterator[Watch]:
    """Yield a watch from before the test to after it."""
    broker = Connection(server.port)
    assert A.but(timeout_ms=600_000).register(broker).code == 0
    watch = Watch(server)
    yield watch
    watch.end()
    broker.close()


@pytest.fixture
def over(watch: Watch) -> Iterator[Attacker]:
    """Yield a connection of a malicious client."""
    connection = Attacker(watch.server.port)
    yield connection
    connection.close()
