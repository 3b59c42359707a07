"""Registrations as JSON: a filter server list and a TopicConfigSerializeWrapper."""

from itertools import islice
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from remoting.data_version import DataVersion, DataVersionMembers
from remoting.errors import BodyError
from remoting.integers import Int32
from remoting.json_cut import SLICE_BYTES, Table
from remoting.json_in import reading_json, without_nulls
from remoting.json_out import Dialect, encode_json
from remoting.known_slices import Slices
from remoting.register_broker_body import RegisterBrokerBody
from remoting.steps import Steps
from remoting.tolerant_json import normalising
from remoting.topic_config import TopicConfig
from remoting.topic_queue_mapping import MappingInfoMembers, encode_mapping_info

REST_MAX_LENGTH: Final = 256 * 1024
"""Bytes that a body may have beside its topics and static topics; brokers send some 200."""
REWRITES_MAX: Final = 200_000
"""Places of a body that may be no strict JSON: the keys of as many queues of static topics."""

_TOPICS_A_STEP: Final = 200
_name_of: Final = attrgetter("topic_name")


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


_TOPICS: Final = Table[TopicConfig | _LooseTopic]("topicConfigTable", TopicConfig, _LooseTopic)
_INFOS: Final = Table[MappingInfoMembers | None](
    "topicQueueMappingInfoMap", MappingInfoMembers | None, MappingInfoMembers | None
)


class _Cut(msgspec.Struct):
    """A body, as far as it was read: the two tables that may be big, and the text without them."""

    topics: dict[str, TopicConfig | _LooseTopic]
    infos: dict[str, MappingInfoMembers | None]
    rest: bytes


def reading_json_body(body: bytes, now_ms: int, slices: Slices | None = None) -> Steps[RegisterBrokerBody]:
    """Read filter servers and topics, but those of known slices. Raises BodyError."""
    cut = yield from _cut(body, slices)
    read: _Body[Any] = yield from reading_json(cut.rest, _Body[TopicConfig], _Body[_LooseTopic])
    wrapper, filter_servers = read.topic_config_serialize_wrapper, read.filter_server_list
    if wrapper is None:
        return RegisterBrokerBody(DataVersion(0, now_ms, 0), filter_servers=filter_servers)
    return (yield from _registered(wrapper, cut, filter_servers, now_ms))


def reading_wrapper(body: bytes, now_ms: int) -> Steps[RegisterBrokerBody]:
    """Read the topics of a broker older than 3.0.11: no filter servers, no static topics. Raises BodyError."""
    cut = yield from _cut(body)
    wrapper: _Wrapper[Any] = yield from reading_json(cut.rest, _Wrapper[TopicConfig], _Wrapper[_LooseTopic])
    return replace((yield from _registered(wrapper, cut, None, now_ms)), mapping_infos={})


def _cut(body: bytes, slices: Slices | None = None) -> Steps[_Cut]:
    """A short body stays whole."""
    cut = _Cut({}, {}, body)
    if len(body) <= SLICE_BYTES:
        return cut
    topics = yield from _TOPICS.cut(body, slices)
    if topics is None and (yield from _TOPICS.is_named_in(body)):
        cut.rest = yield from normalising(body, REWRITES_MAX)
        topics = yield from _TOPICS.cut(cut.rest)
    if topics is not None:
        cut.topics, cut.rest = topics
    if len(cut.rest) > SLICE_BYTES and (yield from _INFOS.is_named_in(cut.rest)):
        cut.rest = yield from normalising(cut.rest, REWRITES_MAX)  # Java writes numbers as keys there
        infos = yield from _INFOS.cut(cut.rest)
        if infos is not None:
            cut.infos, cut.rest = infos
    if len(cut.rest) > REST_MAX_LENGTH:
        raise BodyError(f"{len(cut.rest)} bytes beside the topics")
    return cut


def _registered(
    wrapper: _Wrapper[Any], cut: _Cut, filter_servers: tuple[str, ...] | None, now_ms: int
) -> Steps[RegisterBrokerBody]:
    """A table that was cut out shows as an empty one, unless it stood where it does not belong."""
    table: dict[str, TopicConfig | _LooseTopic] | None = wrapper.topic_config_table
    infos: dict[str, MappingInfoMembers | None] | None = wrapper.topic_queue_mapping_info_map
    table = cut.topics if table == {} else table or {}
    infos = cut.infos if infos == {} else infos
    topics = yield from _by_their_names(table)
    mappings = {}
    for i, (name, info) in enumerate(without_nulls(infos).items()):
        mappings[name] = info.value()
        if i % _TOPICS_A_STEP == 0:
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


def _by_their_names(table: dict[str, TopicConfig | _LooseTopic]) -> Steps[dict[str, TopicConfig]]:
    """The topics by what each says of itself, which is what brokers take for key."""
    keys, configs = iter(table), iter(table.values())
    while part := [*islice(configs, _TOPICS_A_STEP)]:
        if {*map(type, part)} != {TopicConfig} or [*map(_name_of, part)] != [*islice(keys, _TOPICS_A_STEP)]:
            break
        yield
    else:
        return table  # type: ignore[return-value]
    topics = {}
    for i, (key, topic) in enumerate(table.items()):
        config = topic if isinstance(topic, TopicConfig) else topic.value(key)
        topics[config.topic_name] = config
        if i % _TOPICS_A_STEP == 0:
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
