"""Routes as tests write them."""

from rocketmq_remoting.route import BrokerData, QueueData, TopicRouteData
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo


def queues(name: str, read: int = 4, write: int = 4, perm: int = 6) -> QueueData:
    """Queue data of one broker name."""
    return QueueData(name, read, write, perm, 0)


def group(name: str, *ids: int) -> BrokerData:
    """The brokers of one name, at `<name>-<id>:10911`."""
    return BrokerData("c1", name, {number: f"{name}-{number}:10911" for number in ids})


def route(*parts: QueueData | BrokerData, order: str | None = None) -> TopicRouteData:
    """A route of these parts, in the order given."""
    return TopicRouteData(
        tuple(part for part in parts if isinstance(part, BrokerData)),
        tuple(part for part in parts if isinstance(part, QueueData)),
        order_topic_conf=order,
    )


def static(*infos: TopicQueueMappingInfo, order: str | None = None) -> TopicRouteData:
    """A static topic's route."""
    mappings = {info.bname: info for info in infos}
    return TopicRouteData((), (), order_topic_conf=order, topic_queue_mapping_by_broker=mappings)
