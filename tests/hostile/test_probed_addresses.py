"""Peers that register addresses which are not theirs: the server cannot be made to look for open ports."""

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rocketmq_remoting.codes import RequestCode
from testbed.broker import Broker
from testbed.connection import Connection
from testbed.eventually import eventually
from tests.hostile.watch import Watch

PROXY = b"PROXY TCP4 127.10.0.5 127.0.0.1 40000 9876\r\n"


@contextmanager
def ports(host: str, count: int = 1) -> Iterator[list[socket.socket]]:
    """Open ports that must not be looked at."""
    found = [socket.create_server((host, 0)) for _ in range(count)]
    try:
        yield found
    finally:
        for port in found:
            port.close()


def connected_to(found: list[socket.socket]) -> int:
    return len(select.select(found, [], [], 0)[0])


def listed(over: Connection, brokers: list[Broker]) -> int:
    """How many of the brokers are in a client's route."""
    body = over.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body
    return sum(broker.name.encode() in body for broker in brokers)


def scan(watch: Watch, targets: list[str], first: bytes = b"") -> list[Broker]:
    """Register brokers at these addresses over one connection, which is closed."""
    brokers = [Broker(name=f"scan-{n:02}-", addr=to, cluster="scan") for n, to in enumerate(targets)]
    attacker = Connection(watch.server.port, first=first)
    for broker in brokers:
        assert broker.register(attacker).code == 0
    attacker.close()
    return brokers


@pytest.mark.parametrize(
    ("host", "text", "first"),
    [
        pytest.param("127.10.0.5", "127.10.0.5", b"", id="another host"),
        pytest.param("127.10.0.5", "127.10.0.5", PROXY, id="another host, which a PROXY header names"),
        pytest.param("127.0.0.1", "localhost", b"", id="a name"),
    ],
)
def test_an_open_port_elsewhere_is_neither_looked_at_nor_told_of(
    watch: Watch, host: str, text: str, first: bytes
) -> None:
    client = Connection(watch.server.port)
    with ports(host) as found:
        brokers = scan(watch, [f"{text}:{found[0].getsockname()[1]}"], first)
        eventually(lambda: not listed(client, brokers))
        assert not connected_to(found)
    client.close()


def test_sixteen_ports_of_the_peer_itself_are_looked_at(watch: Watch) -> None:
    client = Connection(watch.server.port)
    with ports("127.0.0.1", 24) as found:
        brokers = scan(watch, [f"127.0.0.1:{port.getsockname()[1]}" for port in found])
        eventually(lambda: listed(client, brokers) == connected_to(found) == 16)
    for broker in brokers:
        broker.unregister(client)
    client.close()
