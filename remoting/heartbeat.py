"""HeartbeatData: which groups of producers and consumers a client has. The body of HEART_BEAT.

Members are in the order in which Java writes them. Java's sets are tuples here, for their order travels."""

from enum import Enum
from typing import Final

import msgspec
from msgspec.structs import replace

from remoting.integers import Int32, Int64
from remoting.java_hash import java_hash
from remoting.json_in import decode_json
from remoting.json_out import encode_json

SUB_ALL: Final = "*"
TAG: Final = "TAG"
SQL92: Final = "SQL92"


class ConsumeType(Enum):
    """How a group gets its messages."""

    ACTIVELY = "CONSUME_ACTIVELY"
    """By pulling."""
    PASSIVELY = "CONSUME_PASSIVELY"
    """By what Java calls push."""
    POP = "CONSUME_POP"


class MessageModel(Enum):
    """Whether the members of a group share the messages, or get all of them each."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class ConsumeFromWhere(Enum):
    """Where a group begins that has no offset yet."""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class ProducerData(msgspec.Struct, frozen=True, rename="camel"):
    """A group of producers."""

    group_name: str


class SubscriptionData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What of a topic a group wants; `code_set` has the Java hash of each tag, `sub_version` is in ms."""

    class_filter_mode: bool = False
    code_set: tuple[Int32, ...] = ()
    expression_type: str = TAG
    sub_string: str
    sub_version: Int64
    tags_set: tuple[str, ...] = ()
    topic: str


class ConsumerData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A group of consumers with all its subscriptions."""

    consume_from_where: ConsumeFromWhere
    consume_type: ConsumeType
    group_name: str
    message_model: MessageModel
    subscription_data_set: tuple[SubscriptionData, ...]
    unit_mode: bool = False


class HeartbeatData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The groups of one client. `heartbeat_fingerprint` and `without_sub` came with 5.x: None is left out."""

    client_id: str = msgspec.field(name="clientID")
    consumer_data_set: tuple[ConsumerData, ...]
    heartbeat_fingerprint: Int32 | None = None
    producer_data_set: tuple[ProducerData, ...]
    without_sub: bool | None = None


def encode_heartbeat(data: HeartbeatData) -> bytes:
    """`{"clientID":"10.0.0.1@1","consumerDataSet":[],"producerDataSet":[{"groupName":"pg1"}]}`"""
    return encode_json(data)


def decode_heartbeat(body: bytes) -> HeartbeatData:
    """Read it back. Raises BodyError."""
    return decode_json(body, HeartbeatData)


def fingerprint(data: HeartbeatData) -> int:
    """What a second heartbeat must share with a first to be sent without subscriptions (5.x).

    The Java hash of the body without what is the client's own: its id, and when it made its subscriptions."""
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
    """The short form: the same groups, no subscription."""
    consumers = tuple(replace(consumer, subscription_data_set=()) for consumer in data.consumer_data_set)
    return replace(data, consumer_data_set=consumers, without_sub=True)
