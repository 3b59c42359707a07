"""Both ways to carry connections, for tests that must hold for either."""

import importlib.util
import os
from collections.abc import Iterator

import pytest

from registry.options import BY_KEY

BUILT = importlib.util.find_spec("worker.epoll") is not None
compiled = pytest.mark.skipif(not BUILT, reason="there is no C compiler, or there are no Python headers")
TRANSPORTS = [pytest.param(True, id="epoll", marks=compiled), pytest.param(False, id="uvloop")]
"""Values of the option epollTransport."""

VARIABLE = BY_KEY["epollTransport"].env


def chosen() -> str:
    """The value for servers that are started now."""
    return os.environ.get(VARIABLE, "true")


@pytest.fixture(scope="session", params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Iterator[None]:
    """What servers that are started carry their connections with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(request.param).lower())
        yield
