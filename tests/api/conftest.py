"""The application over a real store, a fake one (fakeredis), and none."""

import hashlib
import socket
from collections.abc import Iterator
from typing import Any

import fakeredis
import pytest
import redis as redis_py

from api.app import create_app
from registry.drivers import run
from registry.expiry.worker_lease import tick
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Origin
from registry.store.connect import connect
from tests.api.http import Http


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def http(redis: redis_py.Redis) -> Http:
    """Return a client over a real store whose lease clock was just renewed."""
    run(tick(Keys(), "w1", Origin("w1-1", "worker:w1")), redis)
    return Http(create_app(Options(), redis=redis).test_client())


@pytest.fixture(scope="module")
def quick() -> Http:
    """Return a client over a fake store, for requests that change nothing."""
    server: Any = fakeredis.FakeServer()
    client: Any = fakeredis.FakeRedis(server=server, decode_responses=True)
    client.eval("return 1", 0)  # makes the runtime, which has no sha1hex
    server._lua_runtime.globals()[b"redis"][b"sha1hex"] = lambda text: hashlib.sha1(text).hexdigest().encode()
    return Http(create_app(Options(), redis=client).test_client())


@pytest.fixture
def storeless() -> Iterator[Http]:
    """Yield a client of an application whose store refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{bound.getsockname()[1]}"
        with connect(url) as client:
            yield Http(create_app(Options(), redis=client).test_client())
