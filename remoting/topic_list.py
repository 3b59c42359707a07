"""TopicList: the answer of 206, 224, 304, 311, 312 and 313."""

import msgspec

from remoting.json_in import decode_json
from remoting.json_out import encode_json


class TopicList(msgspec.Struct, frozen=True):
    """`broker_addr` only from 304: a broker to ask for its own system topics."""

    topic_list: tuple[str, ...]
    broker_addr: str | None = None


class _Members(msgspec.Struct, omit_defaults=True, kw_only=True, rename="camel"):
    broker_addr: str | None = None
    topic_list: tuple[str, ...] | None = ()


class _Written(msgspec.Struct, omit_defaults=True, kw_only=True, rename="camel"):
    broker_addr: str | None = None
    topic_list: tuple[str, ...]


def encode_topic_list(topics: TopicList) -> bytes:
    """`{"brokerAddr":"10.0.0.1:10911","topicList":["TA"]}`, brokerAddr left out where there is none."""
    return encode_json(_Written(broker_addr=topics.broker_addr, topic_list=topics.topic_list))


def decode_topic_list(body: bytes) -> TopicList:
    """Read it back. Raises BodyError."""
    members = decode_json(body, _Members)
    return TopicList(members.topic_list or (), members.broker_addr)
