"""One test's view of a running server: its brokers' connections, and the replies of all workers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from rocketmq_remoting.cluster import ClusterInfo, decode_cluster_info
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, SerializeType
from rocketmq_remoting.kv_table import decode_kv_table
from rocketmq_remoting.properties import parse_properties
from rocketmq_remoting.route import QueueData, TopicRouteData, decode_route
from rocketmq_remoting.tolerant_json import normalise
from rocketmq_remoting.topic_list import decode_topic_list
from testbed.broker import A1, A, B, Broker
from testbed.connection import V4_8_0, Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer

ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"


class Scene:
    """Fixture F0 of the conformance table at the start; `f1`, `f2` and `f3` build the others.

    Requests (`ask`, `route`, `topics`, …) go to each worker and must get the same reply from all. A worker shows
    a change that it has acknowledged, so such a reply is never older than the test's last change.
    """

    def __init__(self, server: NameServer) -> None:
        self.server = server
        self._opened: list[Connection] = []
        self._spare: dict[int, list[Connection]] = {}
        self._order: list[int] = []

    def connect(self, worker: int | None = None) -> Connection:
        """Return a new connection, to worker 0, 1, … if it matters."""
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
        """Register broker-a's master over K1 and return it."""
        broker = A.but(**changes)
        assert broker.register(self.k1).code == 0
        return broker

    def f2(self, **changes: Any) -> Broker:
        """Do F1, register its slave over K2 and return the slave."""
        self.f1(**changes)
        slave = A1.but(**changes)
        assert slave.register(self.k2).code == 0
        return slave

    def f3(self, **changes: Any) -> Broker:
        """Do F1, register broker-b over K3 and return broker-b."""
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
        """Return the reply of all workers."""

        def agreed() -> Command:
            replies = [
                observer.ask(code, ext, body, version=version, serialize_type=serialize_type)
                for observer in self.observers
            ]
            assert len({meaning(reply) for reply in replies}) == 1, replies
            return replies[0]

        return eventually(agreed)

    def route_answer(
        self, topic: str, ext: dict[str, str] | None = None, *, version: int = V4_8_0
    ) -> Command:
        return self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic} | (ext or {}), version=version)

    def route(self, topic: str, ext: dict[str, str] | None = None) -> TopicRouteData:
        reply = self.route_answer(topic, ext)
        assert reply.code == 0, reply.remark
        return decode_route(reply.body)

    def has_route(self, topic: str) -> bool:
        """Return whether there is a route of a topic."""
        reply = self.route_answer(topic)
        assert reply.code in (0, 17)
        return reply.code == 0

    def queues(self, topic: str) -> dict[str, QueueData]:
        """Return the route's queue data by broker name; empty without a route."""
        return (
            {data.broker_name: data for data in self.route(topic).queue_datas}
            if self.has_route(topic)
            else {}
        )

    def perms(self, topic: str) -> dict[str, int]:
        """Return the permissions in the topic's route by broker name."""
        return {name: data.perm for name, data in self.queues(topic).items()}

    def addresses(self, topic: str, ext: dict[str, str] | None = None) -> dict[str, dict[int, str]]:
        """Return the addresses in the topic's route by broker name and id."""
        return {data.broker_name: data.broker_addrs for data in self.route(topic, ext).broker_datas}

    def cluster_info(self) -> ClusterInfo:
        reply = self.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
        assert reply.code == 0
        return decode_cluster_info(reply.body)

    def brokers(self) -> dict[str, dict[int, str]]:
        """Return the addresses in the cluster info by broker name and id."""
        return {name: data.broker_addrs for name, data in self.cluster_info().broker_addr_table.items()}

    def clusters(self) -> dict[str, set[str]]:
        """Return the broker names in the cluster info by cluster."""
        return {name: set(brokers) for name, brokers in self.cluster_info().cluster_addr_table.items()}

    def topics(
        self, code: RequestCode = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, **ext: str
    ) -> set[str]:
        """Return the topics of one of the lists, which must have no duplicates."""
        reply = self.ask(code, ext)
        assert reply.code == 0
        topics = decode_topic_list(reply.body).topic_list
        assert len(set(topics)) == len(topics)
        return set(topics)

    def put_kv(self, namespace: str, key: str, value: str) -> None:
        ext = {"namespace": namespace, "key": key, "value": value}
        assert self.k1.ask(RequestCode.PUT_KV_CONFIG, ext).code == 0

    def config(self) -> dict[str, str]:
        """Return the properties of 319."""
        return parse_properties(self.ask(RequestCode.GET_NAMESRV_CONFIG).body.decode())

    @contextmanager
    def settings(self, **wanted: str) -> Iterator[None]:
        """Set options by 318 for the time of the block."""
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
        """Restore F0: unregister all brokers, delete order configuration, close connections."""
        try:
            eventually(self._left)
        finally:
            for connection in self._opened:
                connection.close()

    def _left(self) -> bool:
        """Leave, and return whether that was all: the worker that lists the brokers may learn of one a moment later."""
        self._leave()
        return self._empty()

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
        reply = self.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        no_topics = reply.code == 1 or not decode_topic_list(reply.body).topic_list
        return no_topics and not self.brokers()


def meaning(reply: Command) -> tuple[int, str | None, str, str]:
    """Return a reply in a form that does not depend on the order of lists and members."""
    try:
        body = json.dumps(_sorted(json.loads(normalise(reply.body))), sort_keys=True) if reply.body else ""
    except ValueError:
        body = reply.body.decode()
    return reply.code, reply.remark, json.dumps(reply.ext or {}, sort_keys=True), body


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(member) for key, member in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(member) for member in value), key=repr)
    return value
