"""Peers that announce long frames and send little of them, or stop in the middle: brokers register all the same."""

import itertools
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rocketmq_remoting.codes import RequestCode
from testbed.broker import Broker
from testbed.connection import Connection
from testbed.run_queue import waited_s
from tests.hostile.bodies import json_body
from tests.hostile.watch import Watch

ATTACKERS = 200
LENGTH = 16 << 20
HEAD = (LENGTH - 4).to_bytes(4, "big") + (1000).to_bytes(4, "big") + b'{"code":103,"opaque":1,'
REGISTRATIONS = 100
ANSWER_S = 1.0
"""For 99 of 100 of them."""
BROKER = Broker(name="attacked", addr="127.67.0.1:10911")
BODY = json_body(700, counter=0)


class Attack(threading.Thread):
    """Connections that each announce a frame of 16 MB; one that is cut off comes again."""

    def __init__(self, port: int, hosts: int, at_first: int, every_s: float) -> None:
        super().__init__(daemon=True)
        self._port, self._every_s = port, every_s
        self._first = HEAD + bytes(at_first)
        self._hosts = itertools.cycle(f"127.68.0.{number}" for number in range(1, hosts + 1))
        self._over = threading.Event()
        self._open = [self._connect() for _ in range(ATTACKERS)]

    def run(self) -> None:
        """Send 10 bytes each every so often, 100 bytes a second then; or nothing."""
        while not self._over.wait(self._every_s or 0.1):
            for at, one in enumerate(self._open):
                try:
                    if self._every_s:
                        one.send(bytes(10))
                    elif not one.recv(1, socket.MSG_PEEK):
                        raise ConnectionResetError
                except BlockingIOError:
                    pass
                except OSError:
                    one.close()
                    self._open[at] = self._connect()

    def end(self) -> None:
        """Assert that it went on until now, and end it."""
        assert self.is_alive()
        self._over.set()
        self.join()
        for one in self._open:
            one.close()

    def _connect(self) -> socket.socket:
        one = socket.create_connection(("127.0.0.1", self._port), 10, (next(self._hosts), 0))
        one.setblocking(False)
        left = memoryview(self._first)
        try:
            while left:
                left = left[one.send(left) :]
        except (BlockingIOError, ConnectionError):
            pass  # the worker does not read on now
        return one


@contextmanager
def attack(watch: Watch, hosts: int, at_first: int, every_s: float) -> Iterator[None]:
    attack = Attack(watch.server.port, hosts, at_first, every_s)
    attack.start()
    try:
        yield
    finally:
        attack.end()


def clock_s(watch: Watch) -> float:
    """The time, which stands still while a worker or this thread waits for a core."""
    return time.monotonic() - waited_s(*watch.workers, "thread-self")


@pytest.mark.parametrize("hosts", [1, 200], ids=["one host", "many hosts"])
@pytest.mark.parametrize(
    ("at_first", "every_s"),
    [
        pytest.param(0, 0.0, id="silent"),
        pytest.param(0, 0.1, id="100 bytes a second"),
        pytest.param(1 << 20, 0.0, id="still after a megabyte"),
    ],
)
def test_a_broker_of_700_topics_registers(watch: Watch, hosts: int, at_first: int, every_s: float) -> None:
    with attack(watch, hosts, at_first, every_s):
        took_s = []
        for number in range(REGISTRATIONS):
            body = BODY.replace(b'"counter":0', b'"counter":%d' % number)
            connection = Connection(watch.server.port)
            began = clock_s(watch)
            reply = connection.ask(RequestCode.REGISTER_BROKER, BROKER.identity(), body)
            took_s.append(clock_s(watch) - began)
            assert reply.code == 0
            connection.close()
        assert sorted(took_s)[REGISTRATIONS - 2] < ANSWER_S
    BROKER.unregister(Connection(watch.server.port))
