"""Peers that ask for long lists again and again, and read fast, slowly or not at all: others are answered in time."""

import threading
from collections.abc import Iterator

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.version import CURRENT
from testbed.broker import Broker, Topic, as_json
from testbed.connection import Connection
from testbed.nameserver import NameServer
from tests.hostile.beside import Beside, Reading, assert_in_time, on_one_worker
from tests.hostile.watch import Watch

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


def pipelined(name: str, count: int) -> bytes:
    code, ext = LISTS[name]
    return b"".join(encode(Command(int(code), opaque, version=CURRENT, ext=ext)) for opaque in range(count))


def attacked(
    watch: Watch, name: str, peers: int, bytes_a_second: int | None, requests: int = REQUESTS
) -> None:
    def attack() -> Beside:  # over connections of its own: what one has not read would be the next one's
        with on_one_worker(watch.server, peers + 1) as (worker, (other, *attackers)):
            opened = [attacker._socket for attacker in attackers]
            beside = Beside(worker, other)
            for connection in opened:
                connection.setblocking(True)
                connection.sendall(pipelined(name, requests))
            reading = Reading(opened, requests, bytes_a_second)
            reading.start()
            try:
                beside.looks_up(lambda: bytes_a_second is not None or not reading.left)
            finally:
                reading.end()
            return beside

    assert_in_time(attack)


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
