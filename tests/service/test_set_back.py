"""A store that is as it was earlier, from a snapshot: brokers that registered since stay in the routes."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.route import decode_route
from testbed.broker import A, B
from testbed.connection import Connection
from testbed.eventually import eventually, stays
from testbed.nameserver import NameServer
from testbed.ports import free_port
from testbed.redis_servers import Server, running

HELD_S = 3.0


def names(over: Connection) -> set[str]:
    """Return the brokers of the route of the topic that both have; none while the store is away."""
    reply = over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"})
    return {data.broker_name for data in decode_route(reply.body).broker_datas} if reply.code == 0 else set()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Server]:
    port = free_port()
    server = Server(tmp_path / "redis", port, {"port": port})
    with running(server):
        yield server


@pytest.fixture
def server(tmp_path: Path, redis: Server) -> Iterator[NameServer]:
    server = NameServer(tmp_path / "server", {}, url=f"redis://127.0.0.1:{redis.port}").start()
    yield server
    server.stop()


def test_a_broker_that_registered_after_the_snapshot_stays(
    tmp_path: Path, redis: Server, server: NameServer
) -> None:
    snapshot = tmp_path / "redis" / "dump.rdb"
    connections = [Connection(server.port) for _ in range(8)]  # the kernel chooses their workers
    over = connections[0]
    assert A.register(over).code == 0
    redis.client.save()
    earlier = snapshot.read_bytes()
    assert B.register(over).code == 0
    for connection in connections:
        eventually(lambda: names(connection) == {A.name, B.name})  # noqa: B023
    redis.process.signal(signal.SIGKILL)
    redis.process.end()
    snapshot.write_bytes(earlier)
    redis.process.start()
    eventually(lambda: "the event stream has a break: numbers come a second time" in server.said())
    for connection in connections:
        eventually(lambda: names(connection))  # noqa: B023
    stays(lambda: all(names(connection) == {A.name, B.name} for connection in connections), HELD_S)
    assert B.register(over).code == 0
    assert B.unregister(over).code == 0
    for connection in connections:
        eventually(lambda: names(connection) == {A.name})  # noqa: B023
    for connection in connections:
        connection.close()
