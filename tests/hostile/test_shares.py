"""Peers that have as many requests under way as the server takes: others are served all the same."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqnamesrv.store import EmbeddedStore
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command, encode
from testbed.broker import A
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer

CAPACITY = 2000
CONNECTIONS = 10
PIPELINED = 205
"""A fifth of the default, and of what is read of one connection before it is answered: the store must not be away for
longer than requests wait for it, however busy this machine is."""
GROUP = {"clusterName": "c", "brokerName": "b"}
ASKED = b"".join(
    encode(Command(int(RequestCode.GET_BROKER_MEMBER_GROUP), n, ext=GROUP)) for n in range(PIPELINED)
)


@pytest.fixture
def server(transport: None, store: EmbeddedStore, tmp_path: Path) -> Iterator[NameServer]:
    options = {"remotingWorkers": "1", "defaultThreadPoolQueueCapacity": str(CAPACITY)}
    server = NameServer(tmp_path / "server", options, url=store.url)
    server.start()
    yield server
    server.stop()


@contextmanager
def crowd(server: NameServer, store: EmbeddedStore) -> Iterator[list[Connection]]:
    """Connections with as many requests under way as they get, of which the store answers none meanwhile."""
    over = [Connection(server.port) for _ in range(CONNECTIONS)]
    assert all(one.usable() for one in over)
    assert store.child is not None
    os.kill(store.child.pid, signal.SIGSTOP)
    try:
        for one in over:
            one.send(ASKED)
        eventually(lambda: any(not one.silent(0) for one in over))
        refused = next(one for one in over if not one.silent(0))
        assert refused.receive().code == ResponseCode.SYSTEM_BUSY
        yield over
    finally:
        os.kill(store.child.pid, signal.SIGCONT)
    for one in over:
        one.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.68.0.1"], ids=["the same host", "another host"])
def test_ten_connections_with_all_the_requests_that_may_wait_shut_out_no_others(
    server: NameServer, store: EmbeddedStore, host: str
) -> None:
    other = Connection(server.port, source=host)
    with crowd(server, store) as crowded:
        other.send_command(Command(int(RequestCode.GET_BROKER_MEMBER_GROUP), 1, ext=GROUP))
        body = A.body()
        other.send_command(Command(int(RequestCode.REGISTER_BROKER), 2, ext=A.ext(body), body=body))
        assert other.silent(0.2), other.receive().remark
    replies = {reply.opaque: reply.code for reply in (other.receive(), other.receive())}
    assert replies == {1: 0, 2: 0}
    assert crowded
    assert "is over the share of one connection, which has " in server.said()
    other.close()
