"""Brokers that come, change and go at random on a real name server, and a client that asks for routes all the while."""

import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import redis as redis_py

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.route import TopicRouteData, decode_route
from testbed.broker import Broker, Topic, as_json
from testbed.connection import V5_3_3, Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer

TOPICS = ("T1", "T2", "T3")
NAMES = ("broker-a", "broker-b", "broker-c")
PAUSE_S = 0.04
RESTS_EVERY = 25
BEHIND_MS = 1000
"""A worker may answer what held until so long ago: it follows the stream, and this machine may be busy."""
SILENT_MS = 900
LONG_MS = 60_000


class Answer(NamedTuple):
    """What was replied about a topic at some instant of [from_ms, to_ms] by the Redis clock; None for no such topic."""

    topic: str
    from_ms: int
    to_ms: int
    route: TopicRouteData | None


class Asker:
    """Asks for one topic after the other over one connection, in a thread of its own."""

    def __init__(self, server: NameServer) -> None:
        self.answers: list[Answer] = []
        self._over = Connection(server.port)
        self._store = server.store()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Asker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._over.close()
        self._store.close()

    def until_sure(self) -> None:
        """Wait until each topic was asked for when all changes so far were known to all."""
        later = now_ms(self._store) + BEHIND_MS
        for topic in TOPICS:
            eventually(partial(self._asked_after, later, topic), 10.0)

    def _asked_after(self, instant: int, topic: str) -> bool:
        return any(
            answer.from_ms > instant and answer.topic == topic for answer in self.answers[-2 * len(TOPICS) :]
        )

    def _run(self) -> None:
        while not self._done.is_set():
            for topic in TOPICS:
                before = now_ms(self._store)
                ext = {"topic": topic, "acceptStandardJsonOnly": "true"}
                answer = self._over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext, version=V5_3_3)
                assert answer.code in (0, 17), answer
                route = decode_route(answer.body) if answer.code == 0 else None
                self.answers.append(Answer(topic, before, now_ms(self._store), route))
            time.sleep(PAUSE_S / 4)


class Play:
    """The brokers' side of it."""

    def __init__(self, server: NameServer, seed: int) -> None:
        self._server = server
        self._random = random.Random(seed)
        self._operator = Connection(server.port)
        self._over: dict[str, Connection] = {}
        self._brokers: dict[str, Broker] = {}
        self._counter = 0

    def run(self, steps: int, rest: Callable[[], None]) -> None:
        """Each act once in a while, all of them at least once, then a member that falls silent and one that stays."""
        acts: list[Callable[[], None]] = [
            self._register,
            self._register,
            self._register,
            self._change,
            self._unregister,
            self._lose,
            self._take_over,
            self._fall_silent,
            self._wipe,
            self._restore,
            self._delete,
            self._set,
        ]
        for step in range(steps):
            (acts[step] if step < len(acts) else self._random.choice(acts))()
            time.sleep(PAUSE_S)
            if step % RESTS_EVERY == 0:
                rest()
        both = (Topic("T1"), Topic("T2"))
        self._put(self._new(0, "broker-y", topics=both))
        self._put(self._new(0, "broker-z", topics=both, timeout_ms=SILENT_MS))

    def close(self) -> None:
        for connection in (*self._over.values(), self._operator):
            connection.close()

    def _new(self, number: int, name: str, **more: object) -> Broker:
        self._counter += 1
        addr = f"127.20.{NAMES.index(name) if name in NAMES else 9}.{self._counter % 250 + 1}:10911"
        topics = self._random.sample(TOPICS, 2)
        made = Broker(
            name,
            number,
            addr,
            addr,
            topics=tuple(Topic(topic, self._random.choice((4, 8))) for topic in topics),
            counter=self._counter,
            acting=self._random.random() < 0.8,
            zone=self._random.choice((None, "zone1")),
            timeout_ms=LONG_MS,
        )
        return made.but(**more)

    def _put(self, broker: Broker) -> None:
        over = self._connection(broker)
        if broker.register(over, version=V5_3_3).code == 0:
            self._brokers[broker.addr] = broker

    def _connection(self, broker: Broker) -> Connection:
        """Return that of its address, from where it is probed when its connection is lost."""
        if broker.addr not in self._over:
            self._over[broker.addr] = Connection(self._server.port, source=broker.addr.partition(":")[0])
        return self._over[broker.addr]

    def _register(self) -> None:
        name, number = self._random.choice(NAMES), self._random.choice((0, 1, 2))
        if not any((one.name, one.id) == (name, number) for one in self._brokers.values()):
            self._put(self._new(number, name))

    def _some(self) -> Broker | None:
        return self._random.choice([*self._brokers.values()]) if self._brokers else None

    def _change(self) -> None:
        if broker := self._some():
            self._counter += 1
            topics = tuple(
                Topic(topic, self._random.choice((2, 16)), self._random.choice((4, 6)))
                for topic in self._random.sample(TOPICS, 2)
            )
            zone = self._random.choice((None, "zone2"))
            self._put(broker.but(topics=topics, counter=self._counter, zone=zone))

    def _unregister(self) -> None:
        if broker := self._some():
            assert broker.unregister(self._over[broker.addr]).code == 0
            del self._brokers[broker.addr]

    def _lose(self) -> None:
        if broker := self._some():
            self._over.pop(broker.addr).reset()
            del self._brokers[broker.addr]

    def _take_over(self) -> None:
        if broker := self._some():
            del self._brokers[broker.addr]
            self._put(self._new(broker.id, broker.name))

    def _fall_silent(self) -> None:
        broker = self._new(3, self._random.choice(NAMES), timeout_ms=SILENT_MS)
        self._put(broker)
        self._brokers.pop(broker.addr, None)  # whose connection is closed when its lease has ended

    def _wipe(self) -> None:
        self._ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": self._random.choice(NAMES)})

    def _restore(self) -> None:
        self._ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": self._random.choice(NAMES)})

    def _delete(self) -> None:
        self._ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": self._random.choice(TOPICS)})

    def _set(self) -> None:
        queues = {
            "brokerName": self._random.choice(NAMES),
            "perm": self._random.choice((4, 6)),
            "readQueueNums": 1,
            "writeQueueNums": 1,
            "topicSysFlag": 0,
        }
        body = as_json({"brokerDatas": [], "queueDatas": [queues]})
        self._ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": self._random.choice(TOPICS)}, body)

    def _ask(self, code: RequestCode, ext: dict[str, str], body: bytes = b"") -> None:
        assert self._operator.ask(code, ext, body, version=V5_3_3).code == 0


class Recorded(NamedTuple):
    """What was answered, and the stream's entries: (id, fields)."""

    answers: list[Answer]
    entries: list[tuple[str, dict[str, str]]]


def record(server: NameServer, seed: int, steps: int) -> Recorded:
    """Play until all members that fell silent have expired."""
    play = Play(server, seed)
    try:
        with Asker(server) as asker, server.store() as store:
            play.run(steps, asker.until_sure)
            eventually(lambda: not_silent(store, server), 10.0)
            asker.until_sure()
            return Recorded(list(asker.answers), store.xrange(server.keys.events))
    finally:
        play.close()


def not_silent(store: redis_py.Redis, server: NameServer) -> bool:
    """Whether no lease is left that ends soon."""
    return store.zcount(server.keys.leases, "-inf", now_ms(store) + SILENT_MS) == 0


def now_ms(store: redis_py.Redis) -> int:
    seconds, micros = store.time()
    return int(seconds) * 1000 + int(micros) // 1000
