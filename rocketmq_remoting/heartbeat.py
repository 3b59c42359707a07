"""HeartbeatData: the producer and consumer groups of a client. The body of HEART_BEAT (34).

Members are in the order in which Java writes them. Java's sets are tuples here, since their order is sent."""

from enum import Enum
from typing import Final

import msgspec
from msgspec.structs import replace

from rocketmq_remoting.integers import Int32, Int64
from rocketmq_remoting.java_hash import java_hash
from rocketmq_remoting.json_decoding import decode_json
from rocketmq_remoting.json_encoding import encode_json

SUB_ALL: Final = "*"
TAG: Final = "TAG"
SQL92: Final = "SQL92"


class ConsumeType(Enum):
    """How a consumer group receives messages."""

    ACTIVELY = "CONSUME_ACTIVELY"
    """By pulling."""
    PASSIVELY = "CONSUME_PASSIVELY"
    """By push, as Java calls it."""
    POP = "CONSUME_POP"


class MessageModel(Enum):
    """Whether each message goes to one consumer of a group or to all."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class ConsumeFromWhere(Enum):
    """Where a consumer group without an offset starts."""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class ProducerData(msgspec.Struct, frozen=True, rename="camel"):
    """A producer group."""

    group_name: str


class SubscriptionData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A subscription of a topic; `code_set` has the Java hash of each tag, `sub_version` is in ms since 1970."""

    class_filter_mode: bool = False
    code_set: tuple[Int32, ...] = ()
    expression_type: str = TAG
    sub_string: str
    sub_version: Int64
    tags_set: tuple[str, ...] = ()
    topic: str


class ConsumerData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A consumer group with its subscriptions."""

    consume_from_where: ConsumeFromWhere
    consume_type: ConsumeType
    group_name: str
    message_model: MessageModel
    subscription_data_set: tuple[SubscriptionData, ...]
    unit_mode: bool = False


class HeartbeatData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The groups of one client. `heartbeat_fingerprint` and `without_sub` exist since 5.x; None is not written."""

    client_id: str = msgspec.field(name="clientID")
    consumer_data_set: tuple[ConsumerData, ...]
    heartbeat_fingerprint: Int32 | None = None
    producer_data_set: tuple[ProducerData, ...]
    without_sub: bool | None = None


def encode_heartbeat(data: HeartbeatData) -> bytes:
    """`{"clientID":"10.0.0.1@1","consumerDataSet":[],"producerDataSet":[{"groupName":"pg1"}]}`"""
    return encode_json(data)


def decode_heartbeat(body: bytes) -> HeartbeatData:
    """Return the heartbeat. Raises BodyError."""
    return decode_json(body, HeartbeatData)


def fingerprint(data: HeartbeatData) -> int:
    """Return the fingerprint by which a broker of 5.x recognises a heartbeat without subscriptions.

    The Java hash of the body without the client id and without the times of the subscriptions."""
    consumers = tuple(
        replace(
            consumer,
            subscription_data_set=tuple(
                replace(sub, sub_version=0) for sub in consumer.subscription_data_set
            ),
        )
        for consumer in data.consumer_data_set
    )
    plain = replace(
        data, client_id="", consumer_data_set=consumers, heartbeat_fingerprint=0, without_sub=False
    )
    return java_hash(encode_heartbeat(plain).decode())


def without_subscriptions(data: HeartbeatData) -> HeartbeatData:
    """Return the short heartbeat: the same groups without subscriptions."""
    consumers = tuple(replace(consumer, subscription_data_set=()) for consumer in data.consumer_data_set)
    return replace(data, consumer_data_set=consumers, without_sub=True)
