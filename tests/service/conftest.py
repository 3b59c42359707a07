"""Servers of a test's own, as the conformance tests start them."""

from tests.conformance.conftest import ending, launch, new_server, store_url
from tests.harness.transports import transport

__all__ = ["ending", "launch", "new_server", "store_url", "transport"]
