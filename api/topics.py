"""Topics: their names (206, 224), their queue data, and both set or deleted on the side (217, 216)."""

from collections.abc import Sequence
from typing import Annotated

from apiflask import APIBlueprint
from pydantic import Field

from api.drains import drains_of
from api.name_server import name_server, origin
from api.paging import PageQuery, page
from api.problems import Problem
from api.shapes import NAME, Answer, Body, Many, Query, QueueDataAnswer, QueueDataBody, Written
from registry.errors import InvalidField, TopicNotFound
from registry.keys import Keys
from registry.members import broker_names
from registry.plans import Plan
from registry.routes import read_route
from registry.topics import delete_topic, register_topic, topic_names, topic_names_of

bp = APIBlueprint("topics", __name__, url_prefix="/v1/topics")


class TopicsQuery(PageQuery):
    """`cluster` leaves only topics with queue data of a broker in it, `broker` only those of that broker (with both, if
    the cluster lists it), `prefix` only names that begin so."""

    cluster: str | None = None
    broker: str | None = None
    prefix: str = ""


class Topics(Answer):
    topics: tuple[str, ...]
    next: str | None


class Topic(Answer):
    """Queue data of the brokers that live."""

    topic: str
    queue_datas: tuple[QueueDataAnswer, ...]


class TopicBody(Body):
    queue_datas: Many[QueueDataBody]


class TopicWritten(Written):
    """`drainedBrokers` are those of the body that are drained: routes show no write permission there."""

    drained_brokers: tuple[str, ...]


class ClusterQuery(Query):
    """An empty `cluster` would be all of them, which is said without it."""

    cluster: Annotated[str, Field(min_length=1)] | None = None


@bp.get("")
@bp.input(TopicsQuery, location="query")
@bp.output(Topics)
@bp.doc(operation_id="listTopics", responses={403: "Switched off by enableAllTopicList or enableTopicList"})
def topics(query_data: TopicsQuery) -> Topics:
    """Topics by name"""
    server = name_server()
    options, of_all = server.options(), query_data.cluster is None and query_data.broker is None
    switch = "enableAllTopicList" if of_all else "enableTopicList"
    if not (options.enable_all_topic_list if of_all else options.enable_topic_list):
        raise Problem(403, "switched-off", f"the setting {switch} is false")
    names, after = page(server.run(_listed(server.keys, query_data)), query_data)
    return Topics(topics=tuple(names), next=after)


def _listed(keys: Keys, query: TopicsQuery) -> Plan[set[str]]:
    if query.cluster is None and query.broker is None:
        return (yield from topic_names(keys, query.prefix))
    brokers: Sequence[str] = () if query.broker is None else (query.broker,)
    if query.cluster is not None:
        listed = yield from broker_names(keys, query.cluster)
        brokers = [name for name in listed if query.broker in (None, name)]
    return (yield from topic_names_of(keys, brokers, query.prefix))


@bp.get("/<topic>")
@bp.output(Topic)
@bp.doc(operation_id="getTopic", responses=[404])
def topic(topic: str) -> Topic:
    """One topic"""
    server = name_server()
    route = server.run(read_route(server.keys, topic))
    if not route.brokers:
        raise TopicNotFound(topic)
    return Topic(
        topic=topic, queue_datas=tuple(QueueDataAnswer.of(broker.queues) for broker in route.brokers)
    )


@bp.put("/<topic>")
@bp.input(TopicBody)
@bp.output(TopicWritten)
@bp.doc(operation_id="putTopic")
def put_topic(topic: str, json_data: TopicBody) -> TopicWritten:
    """Set queue data of a topic on some brokers

    A broker's next registration of changed topics replaces it. It ends no drain of a broker."""
    if not NAME.fullmatch(topic):
        raise InvalidField("topic", "not 1 to 255 characters without blanks and control characters")
    server = name_server()
    names = server.run(broker_names(server.keys))
    for i, data in enumerate(json_data.queue_datas):
        if data.broker_name not in names:
            raise InvalidField(f"queueDatas.{i}.brokerName", f"no broker {data.broker_name!r}")
    queues = [data.value() for data in json_data.queue_datas]
    event_id = server.run(register_topic(server.keys, topic, queues, origin(), server.limits))
    drained = drains_of(dict.fromkeys(data.broker_name for data in queues))
    return TopicWritten(event_id=event_id or None, drained_brokers=tuple(drained))


@bp.delete("/<topic>")
@bp.input(ClusterQuery, location="query")
@bp.output(Written)
@bp.doc(operation_id="deleteTopic", responses=[404])
def remove_topic(topic: str, query_data: ClusterQuery) -> Written:
    """Delete a topic, of one cluster or everywhere

    A broker that still has it brings it back with its next registration."""
    server = name_server()
    event_id = server.run(delete_topic(server.keys, topic, query_data.cluster or "", origin()))
    if not event_id:
        raise TopicNotFound(topic)
    return Written.of(event_id)
