"""What a change means for the routes of topics: which are others, which end, and which no producer could write to."""

import heapq
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from rocketmq_remoting.permission import PERM_READ, PERM_WRITE
from rocketmq_remoting.route import TopicRouteData

__all__ = ["Named", "QueueCounts", "RouteChanges", "RouteComparison"]

MASTER: Final = 0
NAMES_SHOWN: Final = 10


class Named(msgspec.Struct, frozen=True, rename="camel"):
    """How many there are, and the names of the first ten, sorted."""

    count: int = 0
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> "Named":
        distinct = set(names)
        return cls(len(distinct), tuple(heapq.nsmallest(NAMES_SHOWN, distinct)))


class QueueCounts(msgspec.Struct, frozen=True, rename="camel"):
    """Queues of the routes that change, of all their brokers: before and after."""

    before: int = 0
    after: int = 0


class RouteChanges(msgspec.Struct, frozen=True, rename="camel"):
    """`changed` are topics whose routes would be others, as their clients see; of `ended` no broker would be left, of
    `unwritable` no queue that a producer can write to, where there is one now: with write permission, of a broker with
    a master. `unexamined` is how many further topics may be concerned."""

    changed: Named = Named()
    ended: Named = Named()
    unwritable: Named = Named()
    read_queues: QueueCounts = QueueCounts()
    write_queues: QueueCounts = QueueCounts()
    unexamined: int = 0


class RouteComparison:
    """Collects routes as they are and as they would be; None is that of a topic that no broker serves."""

    def __init__(self) -> None:
        self._changed: set[str] = set()
        self._ended: set[str] = set()
        self._unwritable: set[str] = set()
        self._read = self._write = QueueCounts()

    def add(self, topic: str, before: TopicRouteData | None, after: TopicRouteData | None) -> None:
        """Compare the routes of one topic."""
        if _in_order(before) == _in_order(after):
            return
        self._changed.add(topic)
        if after is None:
            self._ended.add(topic)
        write = QueueCounts(_writable(before), _writable(after))
        if write.before and not write.after:
            self._unwritable.add(topic)
        self._read = _sum(self._read, QueueCounts(_readable(before), _readable(after)))
        self._write = _sum(self._write, write)

    def changes(self, unexamined: int = 0) -> RouteChanges:
        """Return what was found."""
        return RouteChanges(
            Named.of(self._changed),
            Named.of(self._ended),
            Named.of(self._unwritable),
            self._read,
            self._write,
            unexamined,
        )


def _in_order(route: TopicRouteData | None) -> TopicRouteData | None:
    """Return a route with its brokers in the order of their names, which no reply keeps."""
    if route is None:
        return None
    return replace(
        route,
        broker_datas=tuple(sorted(route.broker_datas, key=lambda data: data.broker_name)),
        queue_datas=tuple(sorted(route.queue_datas, key=lambda data: data.broker_name)),
    )


def _readable(route: TopicRouteData | None) -> int:
    queues = () if route is None else route.queue_datas
    return sum(data.read_queue_nums for data in queues if data.perm & PERM_READ)


def _writable(route: TopicRouteData | None) -> int:
    """Return the queues that a producer uses: it sends to masters only."""
    if route is None:
        return 0
    with_master = {data.broker_name for data in route.broker_datas if MASTER in data.broker_addrs}
    return sum(
        data.write_queue_nums
        for data in route.queue_datas
        if data.perm & PERM_WRITE and data.broker_name in with_master
    )


def _sum(one: QueueCounts, other: QueueCounts) -> QueueCounts:
    return QueueCounts(one.before + other.before, one.after + other.after)
