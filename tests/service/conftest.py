"""Servers of one test, as the conformance tests start them."""

from testbed.transports import transport
from tests.conformance.conftest import ending, launch, new_server, store_url

__all__ = ["ending", "launch", "new_server", "store_url", "transport"]
