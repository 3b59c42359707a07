"""One test's view of a running server: its brokers' connections, and what all workers answer."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from remoting.cluster import ClusterInfo, decode_cluster_info
from remoting.codes import RequestCode
from remoting.command import Command, SerializeType
from remoting.kv_table import decode_kv_table
from remoting.properties import parse_properties
from remoting.route import QueueData, TopicRouteData, decode_route
from remoting.tolerant_json import normalise
from remoting.topic_list import decode_topic_list
from tests.harness.broker import A1, A, B, Broker
from tests.harness.connection import V4_8_0, Connection
from tests.harness.nameserver import NameServer
from tests.harness.patience import eventually

ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"


class Scene:
    """F0 at the start; `f1`, `f2` and `f3` build the table's other fixtures.

    What asks here (`ask`, `route`, `topics`, …) asks each worker and wants the same answer from all. A worker
    knows a change it has acknowledged, so such an answer is never older than the last one of the test's own.
    """

    def __init__(self, server: NameServer) -> None:
        self.server = server
        self._opened: list[Connection] = []
        self._spare: dict[int, list[Connection]] = {}
        self._order: list[int] = []

    def connect(self, worker: int | None = None) -> Connection:
        """A new connection, to that worker (0, 1, …) if it matters."""
        if worker is None:
            return self._open()
        for _ in range(200):
            if worker < len(self._order) and (spare := self._spare[self._order[worker]]):
                return spare.pop()
            connection = self._open()
            assert connection.usable()
            pid = self.server.worker_of(connection)
            if pid not in self._order:
                self._order.append(pid)
            self._spare.setdefault(pid, []).append(connection)
        raise AssertionError(f"no connection to a worker number {worker}")

    def _open(self) -> Connection:
        connection = Connection(self.server.port)
        self._opened.append(connection)
        return connection

    @cached_property
    def k1(self) -> Connection:
        """The connection of broker-a's master."""
        return self.connect(0)

    @cached_property
    def k2(self) -> Connection:
        """The connection of broker-a's slave, to another worker."""
        return self.connect(self.server.workers - 1)

    @cached_property
    def k3(self) -> Connection:
        """The connection of broker-b, to the same worker as the slave's."""
        return self.connect(self.server.workers - 1)

    def f1(self, **changes: Any) -> Broker:
        """Broker-a's master over K1."""
        broker = A.but(**changes)
        assert broker.register(self.k1).code == 0
        return broker

    def f2(self, **changes: Any) -> Broker:
        """F1, and its slave over K2."""
        self.f1(**changes)
        slave = A1.but(**changes)
        assert slave.register(self.k2).code == 0
        return slave

    def f3(self, **changes: Any) -> Broker:
        """F1, and broker-b over K3."""
        self.f1()
        broker = B.but(**changes)
        assert broker.register(self.k3).code == 0
        return broker

    @cached_property
    def observers(self) -> list[Connection]:
        """A connection to each worker."""
        return [self.connect(number) for number in range(self.server.workers)]

    def ask(
        self,
        code: RequestCode,
        ext: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        version: int = V4_8_0,
        serialize_type: SerializeType = SerializeType.JSON,
    ) -> Command:
        """What all workers answer."""

        def agreed() -> Command:
            answers = [
                observer.ask(code, ext, body, version=version, serialize_type=serialize_type)
                for observer in self.observers
            ]
            assert len({meaning(answer) for answer in answers}) == 1, answers
            return answers[0]

        return eventually(agreed)

    def route_answer(
        self, topic: str, ext: dict[str, str] | None = None, *, version: int = V4_8_0
    ) -> Command:
        return self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic} | (ext or {}), version=version)

    def route(self, topic: str, ext: dict[str, str] | None = None) -> TopicRouteData:
        answer = self.route_answer(topic, ext)
        assert answer.code == 0, answer.remark
        return decode_route(answer.body)

    def known(self, topic: str) -> bool:
        """Whether there is a route."""
        answer = self.route_answer(topic)
        assert answer.code in (0, 17)
        return answer.code == 0

    def queues(self, topic: str) -> dict[str, QueueData]:
        """The route's queue data by broker name; empty without a route."""
        return {data.broker_name: data for data in self.route(topic).queue_datas} if self.known(topic) else {}

    def perms(self, topic: str) -> dict[str, int]:
        """broker name -> perm, in the topic's route."""
        return {name: data.perm for name, data in self.queues(topic).items()}

    def addresses(self, topic: str, ext: dict[str, str] | None = None) -> dict[str, dict[int, str]]:
        """broker name -> id -> address, in the topic's route."""
        return {data.broker_name: data.broker_addrs for data in self.route(topic, ext).broker_datas}

    def cluster_info(self) -> ClusterInfo:
        answer = self.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
        assert answer.code == 0
        return decode_cluster_info(answer.body)

    def brokers(self) -> dict[str, dict[int, str]]:
        """broker name -> id -> address, in the cluster info."""
        return {name: data.broker_addrs for name, data in self.cluster_info().broker_addr_table.items()}

    def clusters(self) -> dict[str, set[str]]:
        """cluster -> broker names, in the cluster info."""
        return {name: set(brokers) for name, brokers in self.cluster_info().cluster_addr_table.items()}

    def topics(
        self, code: RequestCode = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, **ext: str
    ) -> set[str]:
        """The topics of one of the lists, each named once."""
        answer = self.ask(code, ext)
        assert answer.code == 0
        topics = decode_topic_list(answer.body).topic_list
        assert len(set(topics)) == len(topics)
        return set(topics)

    def put_kv(self, namespace: str, key: str, value: str) -> None:
        ext = {"namespace": namespace, "key": key, "value": value}
        assert self.k1.ask(RequestCode.PUT_KV_CONFIG, ext).code == 0

    def config(self) -> dict[str, str]:
        """The answer of 319."""
        return parse_properties(self.ask(RequestCode.GET_NAMESRV_CONFIG).body.decode())

    @contextmanager
    def settings(self, **wanted: str) -> Iterator[None]:
        """With options set by 318, and as they were afterwards."""
        before = self.config()
        self.update_config(wanted)
        try:
            yield
        finally:
            self.update_config({key: before[key] for key in wanted})

    def update_config(self, wanted: dict[str, str]) -> None:
        text = "".join(f"{key}={value}\n" for key, value in wanted.items())
        assert self.k1.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=text.encode()).code == 0

    def clear(self) -> None:
        """Back to F0: all brokers leave, order configuration goes, connections are closed."""
        try:
            self._leave()
            eventually(self._empty, 3.0)
        finally:
            for connection in self._opened:
                connection.close()

    def _leave(self) -> None:
        over = self.connect()
        info = decode_cluster_info(over.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body)
        for name, data in info.broker_addr_table.items():
            for cluster in {data.cluster} | {
                c for c, names in info.cluster_addr_table.items() if name in names
            }:
                for number, addr in data.broker_addrs.items():
                    Broker(name, number, addr, cluster=cluster).unregister(over)
        table = over.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": ORDER_TOPIC_CONFIG})
        if table.code == 0:
            for key in decode_kv_table(table.body).table:
                over.ask(RequestCode.DELETE_KV_CONFIG, {"namespace": ORDER_TOPIC_CONFIG, "key": key})
            self.server.forget_kv_namespace(ORDER_TOPIC_CONFIG)

    def _empty(self) -> bool:
        answer = self.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        no_topics = answer.code == 1 or not decode_topic_list(answer.body).topic_list
        return no_topics and not self.brokers()


def meaning(answer: Command) -> tuple[int, str | None, str, str]:
    """What an answer says, whatever the order of lists and members."""
    try:
        body = json.dumps(_sorted(json.loads(normalise(answer.body))), sort_keys=True) if answer.body else ""
    except ValueError:
        body = answer.body.decode()
    return answer.code, answer.remark, json.dumps(answer.ext or {}, sort_keys=True), body


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(member) for key, member in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(member) for member in value), key=repr)
    return value
