"""TopicList: the response body of 206, 224, 304, 311, 312 and 313."""

import msgspec

from rocketmq_remoting.json_decoding import decode_json
from rocketmq_remoting.json_encoding import encode_json


class TopicList(msgspec.Struct, frozen=True):
    """Topic names; `broker_addr`, in responses of 304 only, is a broker that lists its own system topics."""

    topic_list: tuple[str, ...]
    broker_addr: str | None = None


class _TopicListMembers(msgspec.Struct, omit_defaults=True, kw_only=True, rename="camel"):
    broker_addr: str | None = None
    topic_list: tuple[str, ...] | None = ()


class _WrittenTopicList(msgspec.Struct, omit_defaults=True, kw_only=True, rename="camel"):
    broker_addr: str | None = None
    topic_list: tuple[str, ...]


def encode_topic_list(topics: TopicList) -> bytes:
    """`{"brokerAddr":"10.0.0.1:10911","topicList":["TA"]}`, without brokerAddr if it is None."""
    return encode_json(_WrittenTopicList(broker_addr=topics.broker_addr, topic_list=topics.topic_list))


def decode_topic_list(body: bytes) -> TopicList:
    """Return the list. Raises BodyError."""
    members = decode_json(body, _TopicListMembers)
    return TopicList(members.topic_list or (), members.broker_addr)
