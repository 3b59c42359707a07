"""The topics of a broker: those it starts with, and what becomes of them.

A table is a value. Whatever changes it gives another one under the next data version."""

import hashlib
from collections.abc import Collection, Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from client.broker.config import BrokerConfig
from client.broker.java_order import copied, grown, in_java_order
from client.broker.versions import KeptVersion, first_version, next_version
from remoting.data_version import DataVersion
from remoting.permission import PERM_INHERIT, PERM_READ, PERM_WRITE
from remoting.register_broker_body import RegisterBrokerBody
from remoting.registration import encode_register_broker_body
from remoting.topic_config import TopicConfig
from remoting.topic_queue_mapping import TopicQueueMappingInfo
from remoting.version import V5_0_0

SYNC_BROKER_MEMBER_PREFIX: Final = "rmq_sys_SYNC_BROKER_MEMBER_"
AUTO_CREATE_TOPIC: Final = "TBW102"

_READ_WRITE: Final = PERM_READ | PERM_WRITE
_TABLE_BUCKETS: Final = 2048
"""Of a broker's own table; it is made for 1024 topics."""
_COPY_BUCKETS: Final = 16


class TopicTable(msgspec.Struct, frozen=True):
    """`topics` by name, in the order in which the broker goes through them; `mappings` are its static topics."""

    topics: dict[str, TopicConfig]
    mappings: dict[str, TopicQueueMappingInfo]
    version: DataVersion

    def with_topics(
        self, topics: Iterable[TopicConfig], now_ms: int, mappings: Iterable[TopicQueueMappingInfo] = ()
    ) -> "TopicTable":
        """With these added, or in place of those of their names; `mappings` of those that are static."""
        static = {mapping.topic: mapping for mapping in mappings}
        changed = self._changed(self.topics | _by_name(topics), now_ms)
        return replace(changed, mappings=self.mappings | static) if static else changed

    def without_topic(self, name: str, now_ms: int) -> "TopicTable":
        """Without one, its static queues included; the same table when it is not there."""
        if name not in self.topics:
            return self
        topics = {key: topic for key, topic in self.topics.items() if key != name}
        mappings = {key: mapping for key, mapping in self.mappings.items() if key != name}
        return replace(self._changed(topics, now_ms), mappings=mappings)

    def with_order(self, ordered: Collection[str], now_ms: int) -> "TopicTable":
        """With these as order topics and no others; the same table when nothing changes by that."""
        wrong = [topic for topic in self.topics.values() if topic.order != (topic.topic_name in ordered)]
        if not wrong:
            return self
        return self.with_topics([replace(topic, order=not topic.order) for topic in wrong], now_ms)

    def newer(self, now_ms: int) -> "TopicTable":
        """The same under the next version."""
        return replace(self, version=next_version(self.version, now_ms))

    def digest(self) -> str:
        """Equal for tables with the same content."""
        body = RegisterBrokerBody(DataVersion(), self.topics, mapping_infos=self.mappings)
        return hashlib.sha256(encode_register_broker_body(body, version=V5_0_0, compressed=False)).hexdigest()

    def kept(self) -> KeptVersion:
        """What is to be remembered of it."""
        return KeptVersion(self.version, self.digest())

    def _changed(self, topics: dict[str, TopicConfig], now_ms: int) -> "TopicTable":
        return replace(self, topics=_as_in_a_broker(topics), version=next_version(self.version, now_ms))


def starting_table(config: BrokerConfig, kept: KeptVersion | None, now_ms: int) -> TopicTable:
    """What a broker has after its start: its own topics, and above them the configured ones.

    Its data version is the kept one if it is of the same table, else the next one."""
    topics = _by_name(starting_topics(config)) if config.starting_topics else {}
    topics |= _by_name(config.topics)
    mappings = {topic.topic: topic.mapping(config.broker_name) for topic in config.static_topics}
    table = TopicTable(_as_in_a_broker(topics), mappings, first_version(now_ms))
    if kept is None:
        return table
    known = replace(table, version=kept.data_version)
    return known if table.digest() == kept.table_digest else known.newer(now_ms)


def starting_topics(config: BrokerConfig) -> Iterable[TopicConfig]:
    """What a broker makes by itself, as 4.8.0 and 5.5.0 do."""
    cluster, name = config.broker_cluster_name, config.broker_name
    yield _topic("SELF_TEST_TOPIC", 1)
    if config.auto_create_topic_enable:
        yield _topic(AUTO_CREATE_TOPIC, config.default_topic_queue_nums, _READ_WRITE | PERM_INHERIT)
    yield _topic("BenchmarkTest", 1024)
    yield _topic(cluster, 16, PERM_INHERIT | (_READ_WRITE if config.cluster_topic_enable else 0))
    yield _topic(name, 1, PERM_INHERIT | (_READ_WRITE if config.broker_topic_enable else 0))
    yield _topic("OFFSET_MOVED_EVENT", 1)
    yield _topic("SCHEDULE_TOPIC_XXXX", 18)
    if config.trace_topic_enable:
        yield _topic(config.msg_trace_topic_name, 1)
    yield _topic(f"{cluster}_REPLY_TOPIC", 1)
    if config.plays_5x:
        yield _topic(f"rmq_sys_REVIVE_LOG_{cluster}", 8)
        yield _topic(f"{SYNC_BROKER_MEMBER_PREFIX}{name}", 1, PERM_INHERIT)
        yield _topic("RMQ_SYS_TRANS_HALF_TOPIC", 1)
        yield _topic("RMQ_SYS_TRANS_OP_HALF_TOPIC", 1)
        yield _topic("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", 1)
        yield _topic("RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC", 1)
        yield _topic("rmq_sys_wheel_timer", 1)


def _topic(name: str, queues: int, perm: int = _READ_WRITE) -> TopicConfig:
    return TopicConfig(name, queues, queues, perm)


class Piece(msgspec.Struct, frozen=True):
    """The topics and static topics that one registration carries."""

    topics: dict[str, TopicConfig]
    mappings: dict[str, TopicQueueMappingInfo]


def whole(table: TopicTable, config: BrokerConfig) -> Piece:
    """All that a broker has, in one piece."""
    return Piece(_announced(table.topics, config, len(table.topics)), table.mappings)


def split(table: TopicTable, config: BrokerConfig) -> list[Piece]:
    """The same in pieces of splitRegistrationSize; the last is what is left, even nothing, and the static topics."""
    size = config.split_registration_size
    entries = min(size, len(table.topics))
    left = list(table.topics.values())
    pieces = []
    while len(left) >= size:
        pieces.append(Piece(_announced(_by_name(left[:size]), config, entries), {}))
        del left[:size]
    return [*pieces, Piece(_announced(_by_name(left), config, entries), table.mappings)]


def increment(table: TopicTable, config: BrokerConfig, names: Collection[str]) -> Piece:
    """Only these topics."""
    topics = {name: table.topics[name] for name in names}
    mappings = {name: table.mappings[name] for name in names if name in table.mappings}
    return Piece(_announced(topics, config, len(topics)), mappings)


def restricted(topic: TopicConfig, config: BrokerConfig) -> TopicConfig:
    """The topic as a broker announces it that may not be read or not be written: 4.x puts its own permission in
    place of the topic's, 5.x takes away what it has not."""
    own = config.broker_permission
    if own & _READ_WRITE == _READ_WRITE:
        return topic
    return replace(topic, perm=topic.perm & own if config.plays_5x else own)


def _announced(topics: dict[str, TopicConfig], config: BrokerConfig, entries: int) -> dict[str, TopicConfig]:
    """Some topics go through a copy, whose order is another; it had `entries` at most."""
    own, compressed = config.broker_permission, config.compressed_register
    is_restricted = own & _READ_WRITE != _READ_WRITE
    if is_restricted:
        topics = {name: restricted(topic, config) for name, topic in topics.items()}
    if config.plays_5x or is_restricted or compressed:
        topics = in_java_order(topics, grown(entries, _COPY_BUCKETS))
    if config.plays_5x and compressed:
        topics = in_java_order(topics, copied(entries))
    return topics


def _by_name(topics: Iterable[TopicConfig]) -> dict[str, TopicConfig]:
    return {topic.topic_name: topic for topic in topics}


def _as_in_a_broker(topics: dict[str, TopicConfig]) -> dict[str, TopicConfig]:
    return in_java_order(topics, grown(len(topics), _TABLE_BUCKETS))
