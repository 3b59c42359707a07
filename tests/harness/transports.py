"""Both ways to carry connections, for tests that must hold for either."""

import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.options import BY_KEY

BUILDABLE = shutil.which("cc") is not None and Path(sysconfig.get_path("include"), "Python.h").exists()
compiled = pytest.mark.skipif(not BUILDABLE, reason="there is no C compiler, or there are no Python headers")
TRANSPORTS = [pytest.param(True, id="epoll", marks=compiled), pytest.param(False, id="uvloop")]
"""Values of the option epollTransport. Where the compiled one could be built and is not, its tests fail."""

VARIABLE = BY_KEY["epollTransport"].env


def chosen() -> str:
    """The value for servers that are started now."""
    return os.environ.get(VARIABLE, "true")


@pytest.fixture(scope="session", params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Iterator[None]:
    """What servers that are started carry their connections with."""
    if request.param:
        import worker.epoll  # noqa: F401  servers would quietly take the other
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(request.param).lower())
        yield
