"""The producer and consumer groups of one client."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from mqns.errors import ConfigError
from mqns.heartbeats.subscriptions import Expression, subscription
from mqns.names import RETRY_PREFIX
from rocketmq_remoting.heartbeat import (
    SUB_ALL,
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)


class ConsumerGroup(Struct, frozen=True, kw_only=True):
    """The configuration of a consumer group; `subscriptions` maps a topic to an expression.

    A clustering group that does not pull also subscribes to its retry topic, as in Java."""

    group: str
    subscriptions: Mapping[str, Expression | str]
    consume_type: ConsumeType = ConsumeType.PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.LAST_OFFSET
    unit_mode: bool = False

    def data(self, now_ms: int) -> ConsumerData:
        """Return the group as heartbeats have it. SubscriptionError for an invalid expression."""
        expressions = dict(self.subscriptions)
        if self.message_model is MessageModel.CLUSTERING and self.consume_type is not ConsumeType.ACTIVELY:
            expressions[RETRY_PREFIX + self.group] = SUB_ALL
        return ConsumerData(
            consume_from_where=self.consume_from_where,
            consume_type=self.consume_type,
            group_name=self.group,
            message_model=self.message_model,
            subscription_data_set=tuple(
                subscription(topic, expressions[topic], version_ms=now_ms) for topic in sorted(expressions)
            ),
            unit_mode=self.unit_mode,
        )


class ClientGroups:
    """Groups by name. Heartbeats list them sorted, so that equal groups have equal fingerprints."""

    def __init__(self) -> None:
        self._producers: dict[str, set[str]] = {}
        self._consumers: dict[str, ConsumerData] = {}

    @property
    def producers(self) -> tuple[str, ...]:
        """Names of the producer groups."""
        return tuple(sorted(self._producers))

    @property
    def consumers(self) -> tuple[str, ...]:
        """Names of the consumer groups."""
        return tuple(sorted(self._consumers))

    def topics(self) -> set[str]:
        """Return the topics of all groups."""
        subscribed = {
            sub.topic for consumer in self._consumers.values() for sub in consumer.subscription_data_set
        }
        return subscribed.union(*self._producers.values())

    def add_producer(self, group: str, topics: Iterable[str] = ()) -> None:
        """Add a group. ConfigError if it exists."""
        if group in self._producers:
            raise ConfigError(f"the producer group {group!r} is registered already")
        self._producers[group] = set(topics)

    def add_consumer(self, consumer: ConsumerGroup, now_ms: int) -> None:
        """Add a group. ConfigError if it exists; SubscriptionError."""
        if consumer.group in self._consumers:
            raise ConfigError(f"the consumer group {consumer.group!r} is registered already")
        self._consumers[consumer.group] = consumer.data(now_ms)

    def subscribe(self, group: str, topic: str, expression: Expression | str, now_ms: int) -> None:
        """Add or replace the subscription of a topic. ConfigError for an unknown group; SubscriptionError."""
        added = subscription(topic, expression, version_ms=now_ms)
        self._resubscribe(group, topic, (added,))

    def unsubscribe(self, group: str, topic: str) -> None:
        """Remove the subscription of a topic. ConfigError for an unknown group."""
        self._resubscribe(group, topic, ())

    def remove_producer(self, group: str) -> bool:
        """Remove a group; return whether it existed."""
        return self._producers.pop(group, None) is not None

    def remove_consumer(self, group: str) -> bool:
        """Remove a group; return whether it existed."""
        return self._consumers.pop(group, None) is not None

    def heartbeat(self, client_id: str) -> HeartbeatData | None:
        """Return the heartbeat in the form of 5.x, without fingerprint; None without a group."""
        if not self._producers and not self._consumers:
            return None
        return HeartbeatData(
            client_id=client_id,
            consumer_data_set=tuple(self._consumers[group] for group in self.consumers),
            heartbeat_fingerprint=0,
            producer_data_set=tuple(map(ProducerData, self.producers)),
            without_sub=False,
        )

    def _resubscribe(self, group: str, topic: str, by: tuple[SubscriptionData, ...]) -> None:
        consumer = self._consumers.get(group)
        if consumer is None:
            raise ConfigError(f"no consumer group {group!r}")
        others = (sub for sub in consumer.subscription_data_set if sub.topic != topic)
        subscriptions = tuple(sorted((*others, *by), key=lambda sub: sub.topic))
        self._consumers[group] = replace(consumer, subscription_data_set=subscriptions)
