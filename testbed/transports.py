"""Both transports of connections, for tests that must hold for either."""

import os
from collections.abc import Iterator

import pytest

from registry.options.catalogue import BY_KEY

compiled = pytest.mark.needs("cc")
NAMES = ("epoll", "uvloop")
TRANSPORTS = [
    pytest.param(name == "epoll", id=name, marks=compiled if name == "epoll" else ()) for name in NAMES
]
"""Values of the option epollTransport. Where the compiled one could be built and is not, its tests fail."""

VARIABLE = BY_KEY["epollTransport"].env


def chosen() -> str:
    """Return the value of epollTransport for servers that are started."""
    return os.environ.get(VARIABLE, "true")


@pytest.fixture(scope="session", params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Iterator[None]:
    """The transport of connections of servers that are started."""
    if request.param:
        import worker.transport.epoll  # noqa: F401  servers would quietly take the other
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(request.param).lower())
        yield
