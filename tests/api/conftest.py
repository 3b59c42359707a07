"""The application over a real store, over a pretended one, and over none."""

import socket
from collections.abc import Iterator
from typing import Any

import fakeredis
import pytest
import redis as redis_py

from api.app import create_app
from registry.drivers import run
from registry.keys import Keys
from registry.liveness import tick
from registry.options import Options
from registry.plans import Act
from registry.store import connect
from tests.api.http import Http


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def http(redis: redis_py.Redis) -> Http:
    """Over a real store that a worker has just ticked in."""
    run(tick(Keys(), "w1", Act("w1-1", "worker:w1")), redis)
    return Http(create_app(Options(), redis=redis).test_client())


@pytest.fixture(scope="module")
def quick() -> Http:
    """Over a pretended store, for requests that change nothing."""
    client: Any = fakeredis.FakeRedis(decode_responses=True)
    return Http(create_app(Options(), redis=client).test_client())


@pytest.fixture
def storeless() -> Iterator[Http]:
    """Nobody listens where the store should be."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{bound.getsockname()[1]}"
        with connect(url) as client:
            yield Http(create_app(Options(), redis=client).test_client())
