"""The table of a worker's connections, over fake sockets and a clock that the tests move."""

import asyncio
from collections.abc import Iterator
from socket import socketpair
from typing import cast

import pytest

from registry.options.catalogue import Options
from tests.worker.transport.client import request
from tests.worker.transport.echo_worker import ECHO
from tests.worker.transport.test_connection import LIMITS, Socket, Surroundings
from worker.transport.connection import Connection
from worker.transport.connection_balance import ConnectionBalance
from worker.transport.connections import Connections
from worker.transport.frame_memory import FrameMemory
from worker.transport.tls import ServerTls
from worker.transport.transports import Answered


class Counted:
    """As ConnectionBalance."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def count(self, connections: int) -> None:
        self.counts.append(connections)


class Table:
    """Connections over fake sockets."""

    def __init__(self) -> None:
        self.now = 0.0
        service = Surroundings()
        service.frame_memory = FrameMemory(lambda: self.now, LIMITS)
        self.counted = Counted()
        options = Options(epoll_transport=False)
        self.connections = Connections(
            options,
            service.limits,
            service,
            ServerTls(options),
            asyncio.new_event_loop(),
            cast(ConnectionBalance, self.counted),
        )
        self.connections.time = lambda: self.now

    def opened(self, at: float, *, asks: bool = True) -> tuple[Connection, Socket]:
        self.now = at
        connection, socket = Connection(f"at {at}", "127.0.0.1:4711", self.connections), Socket()
        connection.connection_made(socket)
        if asks:
            connection.data_received(request(ECHO))
        return connection, socket


@pytest.fixture
def table() -> Iterator[Table]:
    table = Table()
    yield table
    table.connections.close()


def test_one_that_has_just_come_is_not_sent_away(table: Table) -> None:
    asked, _ = table.opened(0.0)
    waited, _ = table.opened(98.0, asks=False)
    came, _ = table.opened(100.0, asks=False)
    table.connections.begin_go_away()
    assert [one.go_away for one in (asked, waited, came)] == [True, True, False]


def test_the_longest_quiet_are_closed_first(table: Table) -> None:
    sockets = [table.opened(at)[1] for at in (3.0, 1.0, 2.0)]
    table.now = 1000.0
    table.connections.close_quiet(2, "the worker ends")
    assert [one.closed for one in sockets] == [False, True, False]


def test_a_handshake_is_over_with_its_connection(table: Table) -> None:
    connection, _ = table.opened(0.0, asks=False)
    connection.data_received(b"\x16\x03\x01")
    assert len(table.connections.handshakes) == 1
    connection.connection_lost(None)
    assert len(table.connections.handshakes) == 0


def test_one_that_could_not_be_opened_is_not_counted(table: Table) -> None:
    class Refuses:
        def open(self, accepted: object, connection: Connection) -> None:
            table.connections._never_opened(connection)

        def close(self) -> None:
            pass

        @property
        def answered(self) -> Answered:
            return Answered()

    table.connections._transports = Refuses()
    near, far = socketpair()
    with near, far:
        table.connections.admit(near, "")
    assert (len(table.connections), table.counted.counts) == (0, [1, 0])
