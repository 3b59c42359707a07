"""Registrations as JSON: a filter server list and a TopicConfigSerializeWrapper."""

from itertools import islice
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from rocketmq_remoting.cooperative import Cooperative
from rocketmq_remoting.data_version import DataVersion, DataVersionMembers
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.integers import Int32
from rocketmq_remoting.json_decoding import UNREADABLE, decode_json_cooperatively, without_nulls
from rocketmq_remoting.json_encoding import Dialect, encode_json
from rocketmq_remoting.json_table import BLOCK_BYTES, JsonTable
from rocketmq_remoting.register_broker_body import FilterServerList, RegisterBrokerBody, filter_servers_in
from rocketmq_remoting.table_blocks import TableBlocks
from rocketmq_remoting.tolerant_json import normalise_cooperatively
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import MappingInfoMembers, encode_mapping_info
from rocketmq_remoting.typed import decoder

REST_MAX_LENGTH: Final = 256 * 1024
"""Most bytes of a body besides its topics and static topics; brokers send about 200."""
REWRITES_MAX: Final = 200_000
"""Most rewrites that make a body strict JSON: the number keys of as many queues of static topics."""

_TOPICS_PER_STEP: Final = 200
_name_of: Final = attrgetter("topic_name")


class _LooseTopic(msgspec.Struct, rename="camel"):
    """A topic that only other peers send so; RocketMQ 5.5.0 reads a null number as 0, not as the default.

    Java's own tests send topics without a name: they have that of their key."""

    topic_name: str | None = None
    read_queue_nums: Int32 | None = 16
    write_queue_nums: Int32 | None = 16
    perm: Int32 | None = 6
    topic_sys_flag: Int32 | None = 0
    order: bool | None = False
    topic_filter_type: Any = None

    def value(self, key: str) -> TopicConfig:
        return TopicConfig(
            key if self.topic_name is None else self.topic_name,
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
    filter_server_list: FilterServerList = ()
    topic_config_serialize_wrapper: _Wrapper[_Topic] | None = None


_usual: Final = decoder(_Body[TopicConfig]).decode
_NO_VERSION: Final = DataVersionMembers(0, 0, 0)
_TOPICS: Final = JsonTable[TopicConfig | _LooseTopic]("topicConfigTable", TopicConfig, _LooseTopic)
_INFOS: Final = JsonTable[MappingInfoMembers | None](
    "topicQueueMappingInfoMap", MappingInfoMembers | None, MappingInfoMembers | None
)


class _Extracted(msgspec.Struct):
    """The two tables of a body that may be big, and the text without them."""

    topics: dict[str, TopicConfig | _LooseTopic]
    infos: dict[str, MappingInfoMembers | None]
    rest: bytes


def decode_json_body_cooperatively(
    body: bytes, now_ms: int, blocks: TableBlocks | None = None
) -> Cooperative[RegisterBrokerBody]:
    """Return filter servers and topics, without those of unchanged `blocks`. Raises BodyError."""
    extracted = yield from _extract_tables(body, blocks)
    read: _Body[Any] = yield from decode_json_cooperatively(
        extracted.rest, _Body[TopicConfig], _Body[_LooseTopic]
    )
    wrapper = read.topic_config_serialize_wrapper
    filter_servers = filter_servers_in(read.filter_server_list)
    if wrapper is None:
        return RegisterBrokerBody(DataVersion(0, now_ms, 0), filter_servers=filter_servers)
    return (yield from _registered(wrapper, extracted, filter_servers, now_ms))


def decode_usual_json_body(body: bytes) -> RegisterBrokerBody | None:
    """Return a short body laid out as Java's brokers lay it out, without static topics; None for any other."""
    if len(body) > BLOCK_BYTES:
        return None
    try:
        read = _usual(body)
    except UNREADABLE:
        return None
    wrapper = read.topic_config_serialize_wrapper
    if wrapper is None or wrapper.topic_queue_mapping_info_map or wrapper.topic_config_table is None:
        return None
    table, version, mapping_version = (
        wrapper.topic_config_table,
        wrapper.data_version,
        wrapper.mapping_data_version or _NO_VERSION,
    )
    if version is None or version.timestamp is None or mapping_version.timestamp is None:
        return None
    if [*map(_name_of, table.values())] != [*table]:
        return None
    return RegisterBrokerBody(
        version.value(),
        table,
        table.keys(),
        filter_servers_in(read.filter_server_list),
        mapping_data_version=None if mapping_version is _NO_VERSION else mapping_version.value(),
    )


def decode_wrapper_cooperatively(body: bytes, now_ms: int) -> Cooperative[RegisterBrokerBody]:
    """Return the topics of a broker older than 3.0.11: no filter servers, no static topics. Raises BodyError."""
    extracted = yield from _extract_tables(body)
    wrapper: _Wrapper[Any] = yield from decode_json_cooperatively(
        extracted.rest, _Wrapper[TopicConfig], _Wrapper[_LooseTopic]
    )
    return replace((yield from _registered(wrapper, extracted, None, now_ms)), mapping_infos={})


def _extract_tables(body: bytes, blocks: TableBlocks | None = None) -> Cooperative[_Extracted]:
    """Take the big tables out of a body; a short body is left whole."""
    extracted = _Extracted({}, {}, body)
    if len(body) <= BLOCK_BYTES:
        return extracted
    topics = yield from _TOPICS.extract(body, blocks)
    if topics is None and (yield from _TOPICS.is_named_in(body)):
        extracted.rest = yield from normalise_cooperatively(body, REWRITES_MAX)
        topics = yield from _TOPICS.extract(extracted.rest)
    if topics is not None:
        extracted.topics, extracted.rest = topics
    if len(extracted.rest) > BLOCK_BYTES and (yield from _INFOS.is_named_in(extracted.rest)):
        extracted.rest = yield from normalise_cooperatively(
            extracted.rest, REWRITES_MAX
        )  # Java writes numbers as keys
        infos = yield from _INFOS.extract(extracted.rest)
        if infos is not None:
            extracted.infos, extracted.rest = infos
    if len(extracted.rest) > REST_MAX_LENGTH:
        raise BodyError(f"{len(extracted.rest)} bytes beside the topics")
    return extracted


def _registered(
    wrapper: _Wrapper[Any], extracted: _Extracted, filter_servers: tuple[str, ...] | None, now_ms: int
) -> Cooperative[RegisterBrokerBody]:
    """Return the body with its tables; an extracted table is an empty one in `wrapper` if it stood at its place."""
    table: dict[str, TopicConfig | _LooseTopic] | None = wrapper.topic_config_table
    infos: dict[str, MappingInfoMembers | None] | None = wrapper.topic_queue_mapping_info_map
    table = extracted.topics if table == {} else table or {}
    infos = extracted.infos if infos == {} else infos
    topics = yield from _by_topic_name(table)
    mappings = {}
    for i, (name, info) in enumerate(without_nulls(infos).items()):
        mappings[name] = info.value()
        if i % _TOPICS_PER_STEP == 0:
            yield
    version = wrapper.data_version or DataVersionMembers()
    mapping_version = wrapper.mapping_data_version
    return RegisterBrokerBody(
        version.value(now_ms=now_ms),
        topics,
        table.keys(),
        filter_servers,
        mappings,
        mapping_version.value(now_ms=now_ms) if mapping_version is not None else None,
    )


def _by_topic_name(table: dict[str, TopicConfig | _LooseTopic]) -> Cooperative[dict[str, TopicConfig]]:
    """Return the topics by their names, which are the keys in bodies of brokers."""
    keys, configs = iter(table), iter(table.values())
    while part := [*islice(configs, _TOPICS_PER_STEP)]:
        if {*map(type, part)} != {TopicConfig} or [*map(_name_of, part)] != [*islice(keys, _TOPICS_PER_STEP)]:
            break
        yield
    else:
        return table  # type: ignore[return-value]
    topics = {}
    for i, (key, topic) in enumerate(table.items()):
        config = topic if isinstance(topic, TopicConfig) else topic.value(key)
        topics[config.topic_name] = config
        if i % _TOPICS_PER_STEP == 0:
            yield
    return topics


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
    """Return the whole body; with `static_topics` in the form of 5.x.

    Filter servers None (leave the stored ones unchanged) become null, which Java brokers never send."""
    wrapper = Raw(encode_wrapper(body, static_topics=static_topics))
    return encode_json({"filterServerList": body.filter_servers, "topicConfigSerializeWrapper": wrapper})


def encode_wrapper(body: RegisterBrokerBody, *, static_topics: bool = False) -> bytes:
    """Return the TopicConfigSerializeWrapper: data version and topics."""
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
