"""Publish info: the queues a producer sends to (MQClientInstance.topicRouteData2TopicPublishInfo)."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from client.routes.names import MASTER_ID
from client.routes.queues import QueueRun, Queues
from client.routes.static_topics import queue_runs
from remoting.permission import PERM_WRITE
from remoting.route import TopicRouteData

DEFAULT_QUEUES: Final = 4
_QUEUES_MAX: Final = 2**31 - 1


class PublishInfo(Struct, frozen=True):
    """`is_order_topic`: the queues are those of its order configuration."""

    queues: Queues
    is_order_topic: bool = False


def publish_info(topic: str, route: TopicRouteData) -> PublishInfo:
    """The order configuration's queues if there is one; else a static topic's; else those of all masters that
    may be written to, by broker name."""
    if route.order_topic_conf:
        return PublishInfo(Queues(topic, _ordered(route.order_topic_conf)), is_order_topic=True)
    if route.order_topic_conf is None and route.topic_queue_mapping_by_broker:
        return PublishInfo(Queues(topic, queue_runs(route.topic_queue_mapping_by_broker.values())))
    return PublishInfo(Queues(topic, _writable(route)))


def default_route(route: TopicRouteData, queues: int = DEFAULT_QUEUES) -> TopicRouteData:
    """The route of TBW102 as that of a topic that is not there yet: at most so many queues a broker."""
    return replace(
        route,
        queue_datas=tuple(
            replace(data, read_queue_nums=count, write_queue_nums=count)
            for data in route.queue_datas
            for count in [min(queues, data.read_queue_nums)]
        ),
    )


def _ordered(conf: str) -> Iterator[QueueRun]:
    """`broker-a:4;broker-b:2` -> four of broker-a, two of broker-b; what is no number has none."""
    for part in conf.split(";"):
        name, _, rest = part.partition(":")
        count = rest.partition(":")[0]
        if count.isascii() and count.isdecimal():
            yield QueueRun(name, min(int(count[:11]), _QUEUES_MAX))


def _writable(route: TopicRouteData) -> Iterator[QueueRun]:
    masters = {data.broker_name for data in route.broker_datas if MASTER_ID in data.broker_addrs}
    for data in sorted(route.queue_datas, key=lambda data: data.broker_name):
        if data.perm & PERM_WRITE and data.broker_name in masters:
            yield QueueRun(data.broker_name, data.write_queue_nums)
