"""A run of a real name server, recorded while Spark answers other questions of history: it is mostly waiting."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from mqnamesrv.store import EmbeddedStore
from testbed.nameserver import NameServer
from tests.mqpipeline.history.live_run import Recorded, record

NAMESPACE = "live"


@pytest.fixture(scope="session", autouse=True)
def recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Future[Recorded] | None]:
    """None where no test asks for it."""
    if not any("recorded" in getattr(item, "fixturenames", ()) for item in request.session.items):
        yield None
        return
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(_recorded, tmp_path_factory.mktemp("live"))


def _recorded(folder: Path) -> Recorded:
    store = EmbeddedStore(folder / "store", keep=False)
    store.start()
    options = {"supportActingMaster": "true", "brokerTimeoutMillis": "60000"}
    server = NameServer(folder / "server", options, url=store.url, namespace=NAMESPACE)
    try:
        server.start()
        return record(server, seed=3, steps=90)
    finally:
        server.stop()
        store.stop()


@pytest.fixture(scope="session")
def recorded(recording: Future[Recorded]) -> Recorded:
    return recording.result()
