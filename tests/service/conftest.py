"""Servers of one test, as the conformance tests start them, and one for the tests that leave it as it was."""

from collections.abc import Callable, Iterator

import pytest

from testbed.nameserver import NameServer
from testbed.transports import transport
from tests.conformance.conftest import ending, launch, new_server, store_url

__all__ = ["ending", "launch", "new_server", "store_url", "transport"]


@pytest.fixture(scope="package")
def server(new_server: Callable[[str, dict[str, str]], NameServer]) -> Iterator[NameServer]:
    """Yield a server with default options; a test of it removes its brokers."""
    server = new_server("shared", {}).start()
    yield server
    server.stop()
