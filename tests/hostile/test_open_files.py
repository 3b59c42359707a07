"""More connections than files may be open: the worker keeps what it needs for its store, and serves those it has."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from redis import Redis

from mqnamesrv.store import EmbeddedStore
from rocketmq_remoting.codes import RequestCode
from testbed.broker import A, Topic
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer

FILES = 512
MANY = 700
ONE_WORKER = {"remotingWorkers": "1", "httpWorkers": "1"}


@contextmanager
def many_connections(port: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(MANY):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield


def cut_off(store: EmbeddedStore) -> None:
    """End all connections of the server to its store."""
    with Redis.from_url(store.url) as client:
        client.client_kill_filter(_type="normal", skipme=True)


def serves_one_more(port: int) -> bool:
    connection = Connection(port)
    try:
        return connection.usable()
    except ConnectionError:
        return False
    finally:
        connection.close()


@pytest.mark.parametrize("lowered", ["at the start", "while it runs"])
def test_a_worker_full_of_connections_reconnects_to_its_store(
    transport: None, store: EmbeddedStore, tmp_path: Path, lowered: str
) -> None:
    at_start = lowered == "at the start"
    server = NameServer(tmp_path / "server", ONE_WORKER, url=store.url, files=FILES if at_start else 0)
    server.start()
    try:
        over = Connection(server.port)
        assert A.register(over).code == 0
        worker = server.worker_of(over)
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (FILES, FILES))
        with many_connections(server.port):
            eventually(lambda: "refused: there are" in server.said() or "cannot accept" in server.said())
            for round in range(3):
                cut_off(store)
                eventually(
                    lambda: over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "none"}).code == 17, 5
                )
                newer = A.but(counter=A.counter + 1 + round, topics=(*A.topics, Topic(f"T{round}")))
                eventually(lambda: newer.register(over).code == 0, 5)  # noqa: B023
        eventually(lambda: serves_one_more(server.port))  # the others' ends have to be seen first
        over.close()
        if at_start:
            assert "maxConnections is 256 and not 20000: the limit of open files is 512" in server.said()
    finally:
        server.stop()
