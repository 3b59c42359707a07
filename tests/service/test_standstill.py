"""A worker that stood still asks the store before it answers from its caches again, over either transport."""

import time
from collections.abc import Iterator
from functools import partial

import msgspec
import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, SerializeType
from testbed.broker import A, Broker, Topic
from testbed.connection import OPAQUES, V4_8_0, Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.processes import stopped

EACH = 5
"""Connections that ask the same question."""
LEASE_MS = 3000
CHANGED = A.but(counter=2, topics=(Topic("TA", perm=4), Topic("TNew")))
DYING = Broker(
    name="broker-dying", addr="127.10.0.9:10911", timeout_ms=LEASE_MS, topics=(Topic("TD"), Topic("TE"))
)


class Question(msgspec.Struct, frozen=True):
    """A request, and what is in the reply before and after the change."""

    old: bytes
    new: bytes
    code: int
    topic: str = ""
    kind: SerializeType = SerializeType.JSON

    def command(self) -> Command:
        ext = {"topic": self.topic} if self.topic else None
        return Command(int(self.code), next(OPAQUES), 0, V4_8_0, ext=ext, serialize_type=self.kind)


OF_TOPIC = Question(b'"perm":6', b'"perm":4', RequestCode.GET_ROUTEINFO_BY_TOPIC, "TA")
BINARY = msgspec.structs.replace(OF_TOPIC, kind=SerializeType.ROCKETMQ)
LIST = Question(b'"TA"', b"TNew", RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
OF_DYING = Question(DYING.name.encode(), b"", RequestCode.GET_ROUTEINFO_BY_TOPIC, "TD")
CLUSTERS = Question(DYING.name.encode(), A.name.encode(), RequestCode.GET_BROKER_CLUSTER_INFO)
LASTING = (OF_TOPIC, BINARY, LIST)


class Sides:
    """Connections to the worker that is stopped, one to another worker, and one of the broker that dies."""

    def __init__(self, server: NameServer, count: int) -> None:
        by_worker: dict[int, list[Connection]] = {}
        while (
            len(by_worker) < 2
            or min(map(len, by_worker.values())) < 2
            or max(map(len, by_worker.values())) < count
        ):
            connection = Connection(server.port)
            by_worker.setdefault(eventually(partial(server.worker_of, connection)), []).append(connection)
        self.pid, self.asking = max(by_worker.items(), key=lambda item: len(item[1]))
        others = next(connections for pid, connections in by_worker.items() if pid != self.pid)
        self.other, self.dying, *_ = others  # its connection is closed when its lease is over
        self._all = [connection for connections in by_worker.values() for connection in connections]

    def close(self) -> None:
        for connection in self._all:
            connection.close()


@pytest.fixture
def sides(server: NameServer) -> Iterator[Sides]:
    sides = Sides(server, EACH * 5)
    assert A.register(sides.other).code == 0
    yield sides
    CHANGED.unregister(sides.other)
    sides.close()


def warm(over: Connection, question: Question) -> None:
    """Have it cached: the reply, and the very request."""

    def is_old() -> bool:
        over.send_command(question.command())
        return question.old in over.receive().body

    eventually(is_old)
    for _ in range(3):
        assert is_old()


def asked_after(sides: Sides, for_s: float, questions: tuple[Question, ...]) -> dict[Question, list[bytes]]:
    """Stop the worker for so long, change the routes meanwhile, then ask; return what it answers."""
    asking = [(over, questions[at % len(questions)]) for at, over in enumerate(sides.asking)]
    for over, question in asking:
        warm(over, question)
    with stopped(sides.pid):
        until = time.monotonic() + for_s
        assert CHANGED.register(sides.other).code == 0
        time.sleep(max(until - time.monotonic(), 0))
        for over, question in asking:
            over.send_command(question.command())
    replies: dict[Question, list[bytes]] = {question: [] for question in questions}
    for over, question in asking:
        replies[question].append(over.receive().body)
    return replies


def test_a_worker_that_stood_still_answers_nothing_old(sides: Sides) -> None:
    for question, bodies in asked_after(sides, 1.5, LASTING).items():
        assert [body for body in bodies if question.new not in body] == [], f"of {len(bodies)}"


def test_a_worker_that_stood_still_lists_no_broker_whose_lease_ended_meanwhile(sides: Sides) -> None:
    assert DYING.register(sides.dying).code == 0
    questions = (*LASTING, OF_DYING, CLUSTERS)
    for question, bodies in asked_after(sides, LEASE_MS / 1000 + 2, questions).items():
        assert [body for body in bodies if question.new not in body] == [], f"of {len(bodies)}"
        if DYING.name.encode() == question.old:
            assert [body for body in bodies if question.old in body] == [], f"of {len(bodies)}"
