"""Registrations as JSON: a filter server list and a TopicConfigSerializeWrapper."""

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw

from remoting.data_version import DataVersion, DataVersionMembers
from remoting.errors import BodyError
from remoting.integers import Int32
from remoting.json_in import decode_json, decode_tolerant_json, without_nulls
from remoting.json_out import Dialect, encode_json
from remoting.register_broker_body import RegisterBrokerBody
from remoting.topic_config import TopicConfig
from remoting.topic_queue_mapping import MappingInfoMembers, encode_mapping_info


class _LooseTopic(msgspec.Struct, rename="camel"):
    """A topic as no RocketMQ broker sends it; 5.5.0 reads a null number as 0 and not as the default."""

    topic_name: str | None = None
    read_queue_nums: Int32 | None = 16
    write_queue_nums: Int32 | None = 16
    perm: Int32 | None = 6
    topic_sys_flag: Int32 | None = 0
    order: bool | None = False
    topic_filter_type: Any = None

    def value(self, key: str) -> TopicConfig:
        if self.topic_name is None:
            raise BodyError(f"topicName is missing from topic {key!r}")
        return TopicConfig(
            self.topic_name,
            self.read_queue_nums or 0,
            self.write_queue_nums or 0,
            self.perm or 0,
            self.topic_sys_flag or 0,
            bool(self.order),
            self.topic_filter_type if isinstance(self.topic_filter_type, str) else "SINGLE_TAG",
        )


_Topic = TypeVar("_Topic", TopicConfig, _LooseTopic)


class _Wrapper(msgspec.Struct, Generic[_Topic], rename="camel"):
    data_version: DataVersionMembers | None = None
    mapping_data_version: DataVersionMembers | None = None
    topic_config_table: dict[str, _Topic] | None = None
    topic_queue_mapping_info_map: dict[str, MappingInfoMembers | None] | None = None


class _Body(msgspec.Struct, Generic[_Topic], rename="camel"):
    filter_server_list: tuple[str, ...] | None = ()
    topic_config_serialize_wrapper: _Wrapper[_Topic] | None = None


def decode_json_body(body: bytes, now_ms: int) -> RegisterBrokerBody:
    """Read filter servers and topics. Raises BodyError."""
    read: _Body[TopicConfig] | _Body[_LooseTopic]
    try:
        read = decode_json(body, _Body[TopicConfig])
    except BodyError:
        read = decode_tolerant_json(body, _Body[_LooseTopic])
    return _registered(read.topic_config_serialize_wrapper, read.filter_server_list, now_ms)


def decode_wrapper(body: bytes, now_ms: int) -> RegisterBrokerBody:
    """Read the topics of a broker older than 3.0.11, which sends no filter servers. Raises BodyError."""
    read: _Wrapper[TopicConfig] | _Wrapper[_LooseTopic]
    try:
        read = decode_json(body, _Wrapper[TopicConfig])
    except BodyError:
        read = decode_tolerant_json(body, _Wrapper[_LooseTopic])
    return _registered(read, None, now_ms)


def _registered(
    wrapper: _Wrapper[TopicConfig] | _Wrapper[_LooseTopic] | None,
    filter_servers: tuple[str, ...] | None,
    now_ms: int,
) -> RegisterBrokerBody:
    if wrapper is None:
        return RegisterBrokerBody(DataVersion(0, now_ms, 0), filter_servers=filter_servers)
    table = wrapper.topic_config_table or {}
    topics = {}
    for key, topic in table.items():
        config = topic if isinstance(topic, TopicConfig) else topic.value(key)
        topics[config.topic_name] = config
    version = wrapper.data_version or DataVersionMembers()
    mappings = without_nulls(wrapper.topic_queue_mapping_info_map)
    mapping_version = wrapper.mapping_data_version
    return RegisterBrokerBody(
        version.value(now_ms=now_ms),
        topics,
        frozenset(table),
        filter_servers,
        {topic: info.value() for topic, info in mappings.items()},
        mapping_version.value(now_ms=now_ms) if mapping_version is not None else None,
    )


class _WrittenTopic(msgspec.Struct, gc=False, rename="camel", kw_only=True, omit_defaults=True):
    attributes: dict[str, str] | None = None
    order: bool
    perm: int
    read_queue_nums: int
    topic_filter_type: str
    topic_name: str
    topic_sys_flag: int
    write_queue_nums: int


def encode_json_body(body: RegisterBrokerBody, *, static_topics: bool) -> bytes:
    """The whole body; with `static_topics` in the form of 5.x.

    Filter servers that are to be left alone (None) become a null, which Java brokers never send."""
    wrapper = Raw(encode_wrapper(body, static_topics=static_topics))
    return encode_json({"filterServerList": body.filter_servers, "topicConfigSerializeWrapper": wrapper})


def encode_wrapper(body: RegisterBrokerBody, *, static_topics: bool = False) -> bytes:
    """The TopicConfigSerializeWrapper: data version and topics."""
    attributes: dict[str, str] | None = {} if static_topics else None
    table = {
        name: _WrittenTopic(
            attributes=attributes,
            order=config.order,
            perm=config.perm,
            read_queue_nums=config.read_queue_nums,
            topic_filter_type=config.topic_filter_type,
            topic_name=config.topic_name,
            topic_sys_flag=config.topic_sys_flag,
            write_queue_nums=config.write_queue_nums,
        )
        for name, config in body.topics.items()
    }
    version = body.data_version
    if not static_topics:
        return encode_json({"dataVersion": Raw(version.encode_4x()), "topicConfigTable": table})
    mappings = {
        topic: Raw(encode_mapping_info(info, Dialect.LEGACY)) for topic, info in body.mapping_infos.items()
    }
    return encode_json(
        {
            "dataVersion": Raw(version.encode()),
            "mappingDataVersion": Raw((body.mapping_data_version or version).encode()),
            "topicConfigTable": table,
            "topicQueueMappingDetailMap": {},
            "topicQueueMappingInfoMap": mappings,
        }
    )
