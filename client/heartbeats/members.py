"""The producers and consumers of one client."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from client.errors import ConfigError
from client.heartbeats.subscriptions import Expression, subscription
from client.routes.names import RETRY_PREFIX
from remoting.heartbeat import (
    SUB_ALL,
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)


class Consumer(Struct, frozen=True, kw_only=True):
    """A group of consumers as its user describes it; `subscriptions` maps a topic to what of it is wanted.

    One that shares messages and does not pull gets its retry topic besides, as in Java."""

    group: str
    subscriptions: Mapping[str, Expression | str]
    consume_type: ConsumeType = ConsumeType.PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.LAST_OFFSET
    unit_mode: bool = False

    def data(self, now_ms: int) -> ConsumerData:
        """What a heartbeat says of it. SubscriptionError where an expression is none."""
        wanted = dict(self.subscriptions)
        if self.message_model is MessageModel.CLUSTERING and self.consume_type is not ConsumeType.ACTIVELY:
            wanted[RETRY_PREFIX + self.group] = SUB_ALL
        return ConsumerData(
            consume_from_where=self.consume_from_where,
            consume_type=self.consume_type,
            group_name=self.group,
            message_model=self.message_model,
            subscription_data_set=tuple(
                subscription(topic, wanted[topic], version_ms=now_ms) for topic in sorted(wanted)
            ),
            unit_mode=self.unit_mode,
        )


class Members:
    """Groups by name. Their order in a heartbeat is that of the names, so equal groups make equal fingerprints."""

    def __init__(self) -> None:
        self._producers: dict[str, set[str]] = {}
        self._consumers: dict[str, ConsumerData] = {}

    @property
    def producers(self) -> tuple[str, ...]:
        """Names of the producers' groups."""
        return tuple(sorted(self._producers))

    @property
    def consumers(self) -> tuple[str, ...]:
        """Names of the consumers' groups."""
        return tuple(sorted(self._consumers))

    def topics(self) -> set[str]:
        """All that are published or subscribed."""
        subscribed = {
            sub.topic for consumer in self._consumers.values() for sub in consumer.subscription_data_set
        }
        return subscribed.union(*self._producers.values())

    def add_producer(self, group: str, topics: Iterable[str] = ()) -> None:
        """ConfigError if the group is there already."""
        if group in self._producers:
            raise ConfigError(f"the producer group {group!r} is registered already")
        self._producers[group] = set(topics)

    def add_consumer(self, consumer: Consumer, now_ms: int) -> None:
        """ConfigError if the group is there already; SubscriptionError."""
        if consumer.group in self._consumers:
            raise ConfigError(f"the consumer group {consumer.group!r} is registered already")
        self._consumers[consumer.group] = consumer.data(now_ms)

    def subscribe(self, group: str, topic: str, expression: Expression | str, now_ms: int) -> None:
        """Add a topic to a consumer's group, or want something else of it. ConfigError for an unknown group."""
        added = subscription(topic, expression, version_ms=now_ms)
        self._resubscribe(group, topic, (added,))

    def unsubscribe(self, group: str, topic: str) -> None:
        """Take a topic from a consumer's group. ConfigError for an unknown group."""
        self._resubscribe(group, topic, ())

    def remove_producer(self, group: str) -> bool:
        """Whether it was there."""
        return self._producers.pop(group, None) is not None

    def remove_consumer(self, group: str) -> bool:
        """Whether it was there."""
        return self._consumers.pop(group, None) is not None

    def heartbeat(self, client_id: str) -> HeartbeatData | None:
        """As 5.x writes it, with no fingerprint; None where there is no group."""
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
