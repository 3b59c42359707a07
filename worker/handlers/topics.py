"""Topic lists (206, 224, 311, 312, 313) and topics on the side of registrations (216, 217)."""

from collections.abc import Sequence

from registry import topics
from registry.plans import Plan, within
from registry.topics import UnitKind
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.route import QueueData, decode_route
from rocketmq_remoting.topic_list import TopicList, encode_topic_list
from worker.arguments import BODY_MOST
from worker.dispatch import failure, handles, written
from worker.handlers.drain_warning import warn_if_drained
from worker.reply import Depends, Handled, Reply, Request

DISABLED = failure("disable")
SHORT = 4 << 10
"""Bytes of one that does not wait for rewrites, of some 30 brokers."""


@handles(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
def get_all_topic_list(request: Request) -> Handled:
    """Body: all topics, unless enableAllTopicList is off."""
    if not request.options.enable_all_topic_list:
        return DISABLED
    return _all_topics(request)


@handles(RequestCode.GET_TOPICS_BY_CLUSTER)
def get_topics_by_cluster(request: Request) -> Handled:
    """Body: topics with queue data of the cluster's brokers; none of an unknown cluster."""
    if not request.options.enable_topic_list:
        return DISABLED
    cluster = request.get("cluster")
    if cluster is None:
        return Reply(body=encode_topic_list(TopicList(())))
    return _topics_of_cluster(request, cluster)


@handles(RequestCode.GET_UNIT_TOPIC_LIST)
def get_unit_topic_list(request: Request) -> Handled:
    """Topics whose first queue data has the unit bit."""
    return _unit_topics(request, UnitKind.UNIT)


@handles(RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST)
def get_has_unit_sub_topic_list(request: Request) -> Handled:
    """Topics whose first queue data has the unit-sub bit."""
    return _unit_topics(request, UnitKind.UNIT_SUB)


@handles(RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST)
def get_has_unit_sub_ununit_topic_list(request: Request) -> Handled:
    """Topics with the unit-sub bit and without the unit bit."""
    return _unit_topics(request, UnitKind.UNIT_SUB_NOT_UNIT)


@handles(RequestCode.REGISTER_TOPIC_IN_NAMESRV)
def register_topic_in_namesrv(request: Request) -> Handled:
    """Raises BodyError; no topic, no body and no queue data are no errors."""
    topic, body = request.get("topic"), request.command.body
    if len(body) > BODY_MOST:
        return failure(f"a body of {len(body)} bytes, of {BODY_MOST} at most")
    if len(body) > SHORT:  # what is read of it takes ten times as much
        return within(request.rewrites.limiter, _read_late(request, topic))
    return _registered(request, topic)


@handles(RequestCode.DELETE_TOPIC_IN_NAMESRV)
def delete_topic_in_namesrv(request: Request) -> Handled:
    """Always a success; of one cluster only, if it is named."""
    topic = request.get("topic")
    if topic is None:
        return Reply()
    return written(
        topics.delete_topic(
            request.keys,
            topic,
            request.get("clusterName") or "",
            request.origin,
            request.rewrites.limiter,
        )
    )


def _read_late(request: Request, topic: str | None) -> Plan[Reply]:
    handled = _registered(request, topic)
    return handled if isinstance(handled, Reply) else (yield from handled)


def _registered(request: Request, topic: str | None) -> Handled:
    body = request.command.body
    queues = decode_route(body).queue_datas if body else ()
    if topic is None or not queues:
        return Reply()
    return _set(request, topic, queues)


def _set(request: Request, topic: str, queues: Sequence[QueueData]) -> Plan[Reply]:
    event_id = yield from topics.register_topic(
        request.keys, topic, queues, request.origin, request.limits, claimant=request.claimant
    )
    yield from warn_if_drained(request, tuple(dict.fromkeys(data.broker_name for data in queues)))
    return Reply(event_id=event_id)


def _unit_topics(request: Request, kind: UnitKind) -> Handled:
    return _topics_of_kind(request, kind) if request.options.enable_topic_list else DISABLED


def _topics_of_kind(request: Request, kind: UnitKind) -> Plan[Reply]:
    return _list((yield from topics.unit_topics(request.keys, kind)))


def _all_topics(request: Request) -> Plan[Reply]:
    names, settled = yield from topics.all_topics_settled(request.keys)
    return _list(names, kept=settled)


def _topics_of_cluster(request: Request, cluster: str) -> Plan[Reply]:
    names = yield from topics.topics_of_cluster(request.keys, cluster)
    return _list(names, kept=bool(names))  # a peer may name any cluster


def _list(names: tuple[str, ...], *, kept: bool = True) -> Reply:
    return Reply(body=encode_topic_list(TopicList(names)), depends=Depends() if kept else None)
