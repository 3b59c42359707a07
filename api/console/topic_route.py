"""The route of a topic as pages show it: a row for each broker, with what stands in its way."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rocketmq_remoting.permission import PERM_READ, PERM_WRITE

__all__ = ["BrokerRow", "TopicRoute", "topic_route"]

MASTER = 0


class BrokerRow(msgspec.Struct, frozen=True):
    """A topic on one broker, as routes show it; `addresses` are those of its living members by id, in their order.
    `drained`: `perm` is without write permission whatever is stored."""

    name: str
    cluster: str
    zone: str | None
    addresses: tuple[tuple[int, str], ...]
    read_queues: int
    write_queues: int
    perm: int
    flag: int
    drained: bool
    mapped: bool

    @property
    def writable(self) -> bool:
        """Whether producers send to it: with write permission, a queue, and a master."""
        return bool(self.perm & PERM_WRITE) and self.write_queues > 0 and self.has_master

    @property
    def readable(self) -> bool:
        """Whether consumers read from it."""
        return bool(self.perm & PERM_READ) and self.read_queues > 0

    @property
    def has_master(self) -> bool:
        """Whether a master lives."""
        return any(number == MASTER for number, _ in self.addresses)


class TopicRoute(msgspec.Struct, frozen=True):
    """The brokers of a topic by name, and its order configuration, None without one in routes."""

    rows: tuple[BrokerRow, ...]
    order: str | None

    def row(self, name: str) -> BrokerRow | None:
        """Return the row of a broker, None without."""
        return next((row for row in self.rows if row.name == name), None)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters of its brokers, sorted."""
        return tuple(sorted({row.cluster for row in self.rows}))

    @property
    def writable(self) -> int:
        """How many brokers producers send to."""
        return sum(row.writable for row in self.rows)

    @property
    def write_queues(self) -> int:
        """How many queues producers send to."""
        return sum(row.write_queues for row in self.rows if row.writable)

    @property
    def read_queues(self) -> int:
        """How many queues consumers read."""
        return sum(row.read_queues for row in self.rows if row.readable)

    @property
    def mapped(self) -> int:
        """On how many brokers it is a static topic."""
        return sum(row.mapped for row in self.rows)


def topic_route(route: Mapping[str, Any], drains: Iterable[Mapping[str, Any]]) -> TopicRoute:
    """Return what the API answers of a route, {} of none, with the drains that are in force."""
    drained = {drain["brokerName"] for drain in drains}
    queues = {data["brokerName"]: data for data in route.get("queueDatas", ())}
    mapped = route.get("topicQueueMappingByBroker") or {}
    rows = [
        _row(broker, queues[name], drained=name in drained, mapped=name in mapped)
        for broker in route.get("brokerDatas", ())
        if (name := broker["brokerName"]) in queues
    ]
    return TopicRoute(tuple(sorted(rows, key=lambda row: row.name)), route.get("orderTopicConf"))


def _row(broker: Mapping[str, Any], data: Mapping[str, Any], *, drained: bool, mapped: bool) -> BrokerRow:
    addresses = sorted((int(number), address) for number, address in broker["brokerAddrs"].items())
    return BrokerRow(
        name=broker["brokerName"],
        cluster=broker["cluster"],
        zone=broker.get("zoneName"),
        addresses=tuple(addresses),
        read_queues=data["readQueueNums"],
        write_queues=data["writeQueueNums"],
        perm=data["perm"],
        flag=data["topicSysFlag"],
        drained=drained,
        mapped=mapped,
    )
