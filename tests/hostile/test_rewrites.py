"""Peers that have a large broker's write permission taken and given back again and again: others are served in time."""

import threading
import time
from collections.abc import Iterator

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.version import CURRENT
from testbed.broker import Broker, Topic
from testbed.connection import Connection
from testbed.nameserver import NameServer
from testbed.run_queue import waited_s
from tests.hostile.beside import Beside, Reading, assert_in_time, on_one_worker
from tests.hostile.watch import Watch

LARGE = Broker(
    name="of-a-large-table",
    addr="127.69.1.1:10911",
    cluster="rewritten",
    timeout_ms=600_000,
    topics=tuple(Topic(f"a-usual-topic-name-{number:05d}") for number in range(10_000)),
)
SMALL = Broker(name="beside", addr="127.69.1.2:10911", cluster="rewritten", timeout_ms=600_000)
KNOWN_EVERY_S = 0.02
KNOWN_S = 1.0
"""For 99 of 100 registrations of a known broker."""
KINDS = {
    "wipe": (RequestCode.WIPE_WRITE_PERM_OF_BROKER,),
    "both": (RequestCode.WIPE_WRITE_PERM_OF_BROKER, RequestCode.ADD_WRITE_PERM_OF_BROKER),
}


@pytest.fixture(autouse=True, scope="module")
def large_table(server: NameServer) -> Iterator[None]:
    """Have a broker with many topics."""
    broker = Connection(server.port)
    assert LARGE.register(broker).code == 0
    yield
    LARGE.unregister(broker)
    broker.close()


class Registering(threading.Thread):
    """A known broker, whose table is another with each of its registrations."""

    def __init__(self, connection: Connection, worker: int) -> None:
        super().__init__(daemon=True)
        self._connection = connection
        self._worker = worker
        self._over = threading.Event()
        self.took_s: list[float] = []
        self.codes: set[int] = set()

    def run(self) -> None:
        for counter in range(1, 1 << 20):
            began = self._clock()
            topics = (Topic("beside", queues=1 + counter % 8), Topic("beside-too"))
            self.codes.add(SMALL.but(counter=counter, topics=topics).register(self._connection).code)
            self.took_s.append(self._clock() - began)
            if self._over.wait(KNOWN_EVERY_S):
                return

    def end(self) -> None:
        self._over.set()
        self.join()

    def _clock(self) -> float:
        """The time, which stands still while the worker or this thread waits for a core."""
        return time.monotonic() - waited_s(self._worker, "thread-self")


def pipelined(kind: str, count: int) -> bytes:
    codes, ext = KINDS[kind], {"brokerName": LARGE.name}
    return b"".join(
        encode(Command(int(codes[opaque % len(codes)]), opaque, version=CURRENT, ext=ext))
        for opaque in range(count)
    )


@pytest.mark.parametrize("peers", [1, 10])
@pytest.mark.parametrize("count", [200, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_rewrites_of_a_large_table(watch: Watch, kind: str, count: int, peers: int) -> None:
    with on_one_worker(watch.server, peers + 2) as (worker, (other, known, *attackers)):
        opened = [attacker._socket for attacker in attackers]
        registering = Registering(known, worker)

        def attack() -> Beside:
            beside, reading = Beside(worker, other), Reading(opened, count, None)
            for connection in opened:
                connection.setblocking(True)
                connection.sendall(pipelined(kind, count))
            reading.start()
            beside.looks_up(lambda: not reading.left)
            reading.end()
            return beside

        registering.start()
        try:
            assert_in_time(attack)
        finally:
            registering.end()
    assert registering.codes == {0}
    assert sorted(registering.took_s)[len(registering.took_s) * 99 // 100 - 1] < KNOWN_S
