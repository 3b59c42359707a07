"""The queues to send to (MQClientInstance.topicRouteData2TopicPublishInfo)."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mqns.names import MASTER_ID
from mqns.routes.queues import QueueRun, Queues
from mqns.routes.static_topics import queue_runs
from rocketmq_remoting.permission import PERM_WRITE
from rocketmq_remoting.route import TopicRouteData

DEFAULT_QUEUES: Final = 4
_QUEUES_MAX: Final = 2**31 - 1


class TopicPublishInfo(Struct, frozen=True):
    """The queues to send to; `is_order_topic`: they are those of the topic's order configuration."""

    queues: Queues
    is_order_topic: bool = False


def publish_info(topic: str, route: TopicRouteData) -> TopicPublishInfo:
    """Return the queues of the order configuration if there is one; else a static topic's; else those of all writable
    brokers with a master, by broker name."""
    if route.order_topic_conf:
        return TopicPublishInfo(Queues(topic, _ordered(route.order_topic_conf)), is_order_topic=True)
    if route.order_topic_conf is None and route.topic_queue_mapping_by_broker:
        return TopicPublishInfo(Queues(topic, queue_runs(route.topic_queue_mapping_by_broker.values())))
    return TopicPublishInfo(Queues(topic, _writable(route)))


def default_route(route: TopicRouteData, queues: int = DEFAULT_QUEUES) -> TopicRouteData:
    """Return the route of TBW102 as that of a new topic, with at most `queues` queues per broker."""
    return replace(
        route,
        queue_datas=tuple(
            replace(data, read_queue_nums=count, write_queue_nums=count)
            for data in route.queue_datas
            for count in [min(queues, data.read_queue_nums)]
        ),
    )


def _ordered(conf: str) -> Iterator[QueueRun]:
    """Yield four queues of broker-a and two of broker-b for `broker-a:4;broker-b:2`; skip other entries."""
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
