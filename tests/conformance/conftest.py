"""Servers, each started once for its tests, and the scene that a test plays on one of them."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis

from mqnamesrv.store import EmbeddedStore
from registry.store.rights import QUEUE_RULES, store_rules
from registry.store.url import with_login
from testbed.nameserver import NameServer
from testbed.scene import Scene
from testbed.transports import transport

__all__ = ["transport"]

DEFAULT = "default"
JOBS, PASSWORD = "jobs", "of-tests"
SERVERS: dict[str, dict[str, str]] = {
    DEFAULT: {},
    "options": {
        "orderMessageEnable": "true",
        "returnOrderTopicConfigToBroker": "false",
        "deleteTopicWithBrokerRegistration": "true",
        "supportActingMaster": "true",
        "notifyMinBrokerIdChanged": "true",
        "probeNetworks": "127.0.0.0/8",
        "enableAllTopicList": "false",
        "enableTopicList": "false",
        "configBlackList": "bindAddress;listenPort",
    },
    "crowded": {
        "clientRequestThreadPoolQueueCapacity": "1",
        "defaultThreadPoolQueueCapacity": "9",
        "unRegisterBrokerQueueCapacity": "1",
    },
    "short": {"serverChannelMaxIdleTimeSeconds": "2", "brokerTimeoutMillis": "1000"},
    "tls-disabled": {"tls.server.mode": "disabled"},
    "tls-enforcing": {"tls.server.mode": "enforcing"},
}
"""The options of the servers that tests share, by the name in their `server` mark."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "server(name): the server a test's scene is on, if not the default")


@pytest.fixture(scope="package")
def store_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store for all servers of this run."""
    store = EmbeddedStore(tmp_path_factory.mktemp("store"), keep=False)
    store.start()
    yield store.url
    with Redis.from_url(store.url, decode_responses=True) as client:
        refused = client.acl_log()
    store.stop()
    assert not refused, "rights that were missing"


@pytest.fixture(scope="package")
def new_server(
    transport: None, store_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, dict[str, str]], NameServer]:
    """A server with these options and its own namespace in the store, not started. It has the least rights there."""
    with Redis.from_url(store_url) as store:
        _let_in(store, JOBS, QUEUE_RULES)

    def make(name: str, options: dict[str, str]) -> NameServer:
        folder = tmp_path_factory.mktemp(name)
        namespace = f"{folder.name}-{os.getpid()}"
        with Redis.from_url(store_url) as store:
            _let_in(store, namespace, store_rules([namespace]))
        given = {"rqRedisUrl": with_login(store_url, JOBS, PASSWORD), "accessProfile": "java"}
        return NameServer(
            folder, given | options, url=with_login(store_url, namespace, PASSWORD), namespace=namespace
        )

    return make


def _let_in(store: Redis, user: str, rules: str) -> None:
    client: Any = store
    client.execute_command("ACL", "SETUSER", user, "on", f">{PASSWORD}", *rules.split())


@pytest.fixture(scope="package")
def shared_server(
    new_server: Callable[[str, dict[str, str]], NameServer],
) -> Iterator[Callable[[str], NameServer]]:
    """The running server of that name."""
    running: dict[str, NameServer] = {}

    def get(name: str) -> NameServer:
        if name not in running:
            running[name] = new_server(name, SERVERS[name]).start()
        return running[name]

    yield get
    for server in running.values():
        server.begin_stop()
    for server in running.values():
        server.stop()


@pytest.fixture
def ns(request: pytest.FixtureRequest, shared_server: Callable[[str], NameServer]) -> Iterator[Scene]:
    """A scene on an empty server: F0."""
    mark = request.node.get_closest_marker("server")
    scene = Scene(shared_server(mark.args[0] if mark else DEFAULT))
    yield scene
    scene.clear()


@pytest.fixture(scope="package")
def ending() -> Iterator[list[NameServer]]:
    """Servers that have been terminated; they are waited for when the run is over."""
    servers: list[NameServer] = []
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture
def launch(
    new_server: Callable[[str, dict[str, str]], NameServer], ending: list[NameServer]
) -> Iterator[Callable[..., NameServer]]:
    """Starts servers for one test alone, in a namespace of their own."""
    running: list[NameServer] = []

    def start(**options: str) -> NameServer:
        server = new_server("own", options)
        running.append(server)
        return server.start()

    yield start
    for server in running:
        server.begin_stop()
    ending += running
