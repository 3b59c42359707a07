"""Peers that ask for long lists again and again, and read fast, slowly or not at all: others are answered in time."""

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.version import CURRENT
from testbed.broker import A, Broker, Topic, as_json
from testbed.connection import Connection
from testbed.nameserver import NameServer
from testbed.run_queue import waited_s
from tests.hostile.watch import Watch, resident

TOPICS = 20_000
FLAG = 3
"""Of all topics: they are in 311 and 312 too."""
OWNER = Broker(
    name="of-many",
    addr="127.69.0.1:10911",
    cluster="listed",
    timeout_ms=600_000,
    topics=tuple(Topic(f"Topic-{number:06d}-in-a-long-list", flag=FLAG) for number in range(TOPICS)),
)
KV, VALUES, VALUE = "listed", 20, "x" * 30_000
REQUESTS = 500
RESIDENT_BYTES = 200 << 20
LOOKUPS = 200
EVERY_S = 0.005
ANSWER_S = 0.05
"""For 99 of 100 lookups."""
LISTS = {
    "206": (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {}),
    "219": (RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": KV}),
    "224": (RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": OWNER.cluster}),
    "304": (RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, {}),
    "311": (RequestCode.GET_UNIT_TOPIC_LIST, {}),
}


@pytest.fixture(autouse=True, scope="module")
def many_topics(server: NameServer) -> Iterator[None]:
    """Have many topics and a long KV namespace."""
    broker = Connection(server.port)
    assert OWNER.register(broker).code == 0
    for key in map(str, range(VALUES)):
        fields = {"namespace": KV, "key": key}
        assert broker.ask(RequestCode.PUT_KV_CONFIG, fields | {"value": VALUE}).code == 0
    yield
    for key in map(str, range(VALUES)):
        assert broker.ask(RequestCode.DELETE_KV_CONFIG, {"namespace": KV, "key": key}).code == 0
    OWNER.unregister(broker)
    broker.close()


class Reading(threading.Thread):
    """Connections whose replies are read, `bytes_a_second` of each, as fast as they come (None) or not at all (0)."""

    def __init__(self, opened: list[socket.socket], count: int, bytes_a_second: int | None) -> None:
        super().__init__(daemon=True)
        self.left = dict.fromkeys(opened, count)
        self._pause_s = 0.0 if not bytes_a_second else (1 << 16) / bytes_a_second
        self._silent = bytes_a_second == 0
        self._over = threading.Event()
        self._wanted = dict.fromkeys(opened, 0)  # bytes of the frame that is being read
        self._heads = dict.fromkeys(opened, b"")

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for connection in self.left:
                connection.setblocking(False)
                selector.register(connection, selectors.EVENT_READ)
            while not self._silent and self.left and not self._over.wait(self._pause_s):
                for key, _ in selector.select(0.05):
                    self._take(key.fileobj, selector)  # type: ignore[arg-type]

    def end(self) -> None:
        self._over.set()
        self.join()

    def _take(self, connection: socket.socket, selector: selectors.BaseSelector) -> None:
        data = b""
        with suppress(BlockingIOError):
            data = connection.recv(1 << 16)
        data, at = self._heads[connection] + data, 0
        while at < len(data):
            if self._wanted[connection]:
                taken = min(len(data) - at, self._wanted[connection])
                self._wanted[connection] -= taken
                at += taken
                self.left[connection] -= not self._wanted[connection]
            elif len(data) - at >= 4:
                self._wanted[connection] = int.from_bytes(data[at : at + 4], "big")
                at += 4
            else:
                break
        self._heads[connection] = data[at:]
        if not self.left[connection]:
            selector.unregister(connection)
            del self.left[connection]


@contextmanager
def on_one_worker(watch: Watch, count: int) -> Iterator[tuple[int, list[Connection]]]:
    """Yield a worker and so many connections to it."""
    opened: dict[int, list[Connection]] = {}
    try:
        while True:
            connection = Connection(watch.server.port)
            assert connection.usable()
            mine = opened.setdefault(watch.server.worker_of(connection), [])
            mine.append(connection)
            if len(mine) == count:
                yield watch.server.worker_of(connection), mine
                return
    finally:
        for connections in opened.values():
            for connection in connections:
                connection.close()


class Beside:
    """What another client of the attacked worker met."""

    def __init__(self, worker: int, connection: Connection) -> None:
        self._worker = worker
        self._connection = connection
        self.took_s: list[float] = []
        self.most_bytes = resident(worker)

    def looks_up(self, until: Callable[[], bool]) -> None:
        """Look a topic up so many times, and until this is true; a lookup that a late one delays is as late."""
        due = self._clock()
        while len(self.took_s) < LOOKUPS or not until():
            assert (
                self._connection.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": A.topics[0].name}).code
                == 0
            )
            self.took_s.append(self._clock() - due)
            self.most_bytes = max(self.most_bytes, resident(self._worker))
            due += EVERY_S
            time.sleep(max(due - self._clock(), 0.0))

    @property
    def p99_s(self) -> float:
        return sorted(self.took_s)[len(self.took_s) * 99 // 100 - 1]

    def _clock(self) -> float:
        """The time, which stands still while the worker or this thread waits for a core."""
        return time.monotonic() - waited_s(self._worker, "thread-self")


def pipelined(name: str, count: int) -> bytes:
    code, ext = LISTS[name]
    return b"".join(encode(Command(int(code), opaque, version=CURRENT, ext=ext)) for opaque in range(count))


def attacked(
    watch: Watch, name: str, peers: int, bytes_a_second: int | None, requests: int = REQUESTS
) -> Reading:
    with on_one_worker(watch, peers + 1) as (worker, (other, *attackers)):
        opened = [attacker._socket for attacker in attackers]
        beside = Beside(worker, other)
        for connection in opened:
            connection.sendall(pipelined(name, requests))
        reading = Reading(opened, requests, bytes_a_second)
        reading.start()
        try:
            beside.looks_up(lambda: bytes_a_second is not None or not reading.left)
        finally:
            reading.end()
        assert beside.most_bytes < RESIDENT_BYTES
        assert beside.p99_s < ANSWER_S
    return reading


def test_five_hundred_lists_of_all_topics(watch: Watch) -> None:
    attacked(watch, "206", 1, None)


@pytest.mark.parametrize("bytes_a_second", [0, 1 << 20], ids=["nothing", "slowly"])
@pytest.mark.parametrize("name", LISTS)
def test_ten_peers_that_read_slowly_or_nothing(watch: Watch, name: str, bytes_a_second: int) -> None:
    attacked(watch, name, 10, bytes_a_second)


class Changing(threading.Thread):
    """A peer that changes topics as fast as it is answered."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(daemon=True)
        self._connection = connection
        self._over = threading.Event()
        self.changes = 0

    def run(self) -> None:
        while not self._over.is_set():
            self.changes += 1
            queues = {"brokerName": OWNER.name, "perm": 6, "topicSysFlag": FLAG}
            queues |= dict.fromkeys(("readQueueNums", "writeQueueNums"), 1 + self.changes % 2)
            fields, body = {"topic": OWNER.topics[0].name}, as_json({"queueDatas": [queues]})
            assert self._connection.ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, fields, body).code == 0

    def end(self) -> None:
        self._over.set()
        self.join()


@pytest.mark.parametrize("name", ["206", "311"])
def test_lists_that_change_all_the_time(watch: Watch, name: str) -> None:
    """None is kept then; it is read for all that wait for it, and few are read at once."""
    connection = Connection(watch.server.port)
    changing = Changing(connection)
    changing.start()
    try:
        attacked(watch, name, 10, None, 10)
    finally:
        changing.end()
        connection.close()
    assert changing.changes > 10
