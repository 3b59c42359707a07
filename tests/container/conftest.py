"""A name server of four containers, as the chart's Deployments start them, over a real Redis."""

import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import msgspec
import pytest
from redis import Redis

from registry.keys import Keys
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.redis_servers import Server, free_ports
from testbed.redis_servers import running as serving
from tests.container.podman import NAMESRV, Container, running

COMMANDS = {
    "remoting": ("gunicorn", "-c", "python:mqnamesrv.gunicorn_remoting", "wsgi:app"),
    "http": ("gunicorn", "-c", "python:mqnamesrv.gunicorn_http", "wsgi:app"),
    "jobs": ("python", "-m", "worker.jobs.rq_worker"),
    "scheduler": ("python", "-m", "worker.jobs.scheduler"),
}
STARTS_WITHIN_S = 60.0
SHARED = "shared"
"""The namespace of the containers that most tests share."""


class Containers(msgspec.Struct, frozen=True):
    """The parts of a name server by name, the ports of two of them, and their store."""

    parts: dict[str, Container]
    port: int
    http_port: int
    redis: Redis
    keys: Keys

    def ready(self) -> bool:
        """Whether it answers over HTTP with the store, and over remoting."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/readyz", timeout=1) as answer:
            return answer.status == 200 and bool(Connection(self.port))


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis that containers reach."""
    (port,) = free_ports(1)
    with serving(Server(tmp_path_factory.mktemp("redis"), port, {"port": port})):
        yield f"redis://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def containers(redis_url: str) -> Iterator[Containers]:
    """All four, ready, for tests that end none of them."""
    with name_server(redis_url, SHARED) as made:
        yield made


@pytest.fixture
def own_containers(redis_url: str) -> Iterator[Containers]:
    """The same for one test alone."""
    with name_server(redis_url, uuid.uuid4().hex) as made:
        yield made


@contextmanager
def name_server(redis_url: str, namespace: str) -> Iterator[Containers]:
    """All four, ready."""
    port, http_port = free_ports(2)
    env = {
        "MQNS_REDIS_URL": redis_url,
        "MQNS_NAMESPACE": namespace,
        "MQNS_BIND_ADDRESS": "127.0.0.1",
        "MQNS_HTTP_BIND_ADDRESS": "127.0.0.1",
        "MQNS_LISTEN_PORT": str(port),
        "MQNS_HTTP_PORT": str(http_port),
    }
    with ExitStack() as stack:
        redis = stack.enter_context(Redis.from_url(redis_url, decode_responses=True))
        parts = {
            name: stack.enter_context(running(NAMESRV, *command, env=env))
            for name, command in COMMANDS.items()
        }
        containers = Containers(parts, port, http_port, redis, Keys(namespace))
        eventually(lambda: _is_ready(containers), STARTS_WITHIN_S)
        yield containers


def _is_ready(made: Containers) -> bool:
    for name, container in made.parts.items():
        assert container.state("Running") == "true", f"{name} ended: {container.said()}"
    try:
        return made.ready()
    except (urllib.error.URLError, OSError):
        return False
