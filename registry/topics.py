"""Topics: their lists (206, 224, 311-313), and queue data set or deleted beside registrations (217, 216)."""

from collections.abc import Callable, Iterable
from enum import Enum

from registry.keys import Keys
from registry.plans import Batch, Origin, Plan, ScriptCall, as_json, call
from registry.queue_text import current, queue_data, queue_text
from registry.scan import scan
from registry.slices import TOPICS_MAX
from rocketmq_remoting.route import QueueData

FLAG_UNIT = 1
FLAG_UNIT_SUB = 2


class UnitKind(Enum):
    """Which topics by topicSysFlag: 311, 312 and 313 (RocketMQ TopicSysFlag)."""

    UNIT = "unit"
    UNIT_SUB = "unit sub"
    UNIT_SUB_NOT_UNIT = "unit sub, not unit"

    def matches(self, flag: int) -> bool:
        unit, sub = bool(flag & FLAG_UNIT), bool(flag & FLAG_UNIT_SUB)
        return {"unit": unit, "unit sub": sub}.get(self.value, sub and not unit)


def all_topics(keys: Keys) -> Plan[tuple[str, ...]]:
    """Return the names of all topics (206)."""
    return tuple(sorted((yield call("SMEMBERS", keys.topics))))


def topics_of_cluster(keys: Keys, cluster: str) -> Plan[tuple[str, ...]]:
    """Return the topics of any broker that the cluster lists (224); none of an unknown cluster."""
    names = yield call("SMEMBERS", keys.cluster(cluster))
    topics: set[str] = set()
    for name in names:
        topics |= (yield from topics_of_broker(keys, name)).keys()
    return tuple(sorted(topics))


def topics_of_broker(keys: Keys, name: str) -> Plan[dict[str, QueueData]]:
    """Return the queue data of one broker name, by topic."""
    epoch = yield call("HGET", keys.broker(name), "epoch")
    texts = current((yield from scan(keys.topics_of(name))), epoch) if epoch is not None else {}
    return {topic: queue_data(name, text) for topic, text in texts.items()}


def unit_topics(keys: Keys, kind: UnitKind) -> Plan[tuple[str, ...]]:
    """Return topics by the topicSysFlag of their first queue data, brokers in the order of their names."""
    return (yield from _topics_where(keys, lambda data: kind.matches(data.topic_sys_flag)))


def _topics_where(keys: Keys, matches: Callable[[QueueData], bool]) -> Plan[tuple[str, ...]]:
    topics = yield from all_topics(keys)
    names = sorted((yield call("SMEMBERS", keys.brokers)))
    epochs = (yield Batch(tuple(call("HGET", keys.broker(name), "epoch") for name in names))) if names else []
    epoch_of = dict(zip(names, epochs, strict=True))
    matching: list[str] = []
    for start in range(0, len(topics), TOPICS_MAX):
        batch = topics[start : start + TOPICS_MAX]
        routes = yield Batch(tuple(call("HGETALL", keys.route(topic)) for topic in batch))
        for topic, route in zip(batch, routes, strict=True):
            first = _first_queue_data(route, epoch_of)
            if first is not None and matches(first):
                matching.append(topic)
    return tuple(matching)


def _first_queue_data(route: dict[str, str], epoch_of: dict[str, str | None]) -> QueueData | None:
    for name in sorted(route):
        epoch, _, text = route[name].partition(",")
        if epoch_of.get(name) == epoch:
            return queue_data(name, text)
    return None


def register_topic(keys: Keys, topic: str, queues: Iterable[QueueData], origin: Origin) -> Plan[str]:
    """Set queue data of one topic (217), in the given order up to the first unknown broker. Returns the event id."""
    rows = [(data.broker_name, queue_text(data)) for data in queues]
    return (
        yield from _write(
            keys, topic, {"origin": origin, "cause": "topic_register", "topic": topic, "rows": rows}
        )
    )


def delete_topic(keys: Keys, topic: str, cluster: str, origin: Origin) -> Plan[str]:
    """Delete a topic, of one cluster or ("") everywhere (216). Returns the event id."""
    request = {"origin": origin, "cause": "topic_delete", "topic": topic, "cluster": cluster}
    return (yield from _write(keys, topic, request))


def _write(keys: Keys, topic: str, request: dict[str, object]) -> Plan[str]:
    event_id = yield ScriptCall("set_topic", (keys.events_meta, keys.route(topic)), (as_json(request),))
    return str(event_id)
