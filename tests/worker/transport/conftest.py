"""One gunicorn for the tests that need nothing special of it."""

from collections.abc import Iterator

import pytest

from testbed.transports import transport
from tests.worker.transport.client import Server, serving

__all__ = ["server", "transport"]


@pytest.fixture(scope="package")
def server(transport: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One worker with default options, shared: tests must not stop it or fill it."""
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running
