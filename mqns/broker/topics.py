"""The topic table of a broker, and the batches in which it is registered.

A table is a value; each change returns a new table with the next data version."""

import hashlib
from collections.abc import Collection, Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from mqns.broker.config import BrokerConfig
from mqns.broker.java_order import copied, grown, in_java_order
from mqns.broker.versions import StoredVersion, first_version, next_version
from mqns.names import AUTO_CREATE_TOPIC
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.permission import PERM_INHERIT, PERM_READ, PERM_WRITE
from rocketmq_remoting.register_broker_body import RegisterBrokerBody
from rocketmq_remoting.registration import encode_register_broker_body
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo
from rocketmq_remoting.version import V5_0_0

SYNC_BROKER_MEMBER_PREFIX: Final = "rmq_sys_SYNC_BROKER_MEMBER_"

_READ_WRITE: Final = PERM_READ | PERM_WRITE
_TABLE_BUCKETS: Final = 2048
"""Buckets of a broker's own table, which is created for 1024 topics."""
_COPY_BUCKETS: Final = 16


class TopicTable(msgspec.Struct, frozen=True):
    """`topics` by name, in the order of a Java broker; `mappings` are its static topics."""

    topics: dict[str, TopicConfig]
    mappings: dict[str, TopicQueueMappingInfo]
    version: DataVersion

    def with_topics(
        self, topics: Iterable[TopicConfig], now_ms: int, mappings: Iterable[TopicQueueMappingInfo] = ()
    ) -> "TopicTable":
        """Return the table with these topics added or replaced; `mappings` of static topics."""
        static = {mapping.topic: mapping for mapping in mappings}
        changed = self._changed(self.topics | _by_name(topics), now_ms)
        return replace(changed, mappings=self.mappings | static) if static else changed

    def without_topic(self, name: str, now_ms: int) -> "TopicTable":
        """Return the table without a topic and its mapping; the same table for an unknown topic."""
        if name not in self.topics:
            return self
        topics = {key: topic for key, topic in self.topics.items() if key != name}
        mappings = {key: mapping for key, mapping in self.mappings.items() if key != name}
        return replace(self._changed(topics, now_ms), mappings=mappings)

    def with_order(self, ordered: Collection[str], now_ms: int) -> "TopicTable":
        """Return the table with exactly these order topics; the same table without a change."""
        wrong = [topic for topic in self.topics.values() if topic.order != (topic.topic_name in ordered)]
        if not wrong:
            return self
        return self.with_topics([replace(topic, order=not topic.order) for topic in wrong], now_ms)

    def newer(self, now_ms: int) -> "TopicTable":
        """Return the table with the next version."""
        return replace(self, version=next_version(self.version, now_ms))

    def digest(self) -> str:
        """Return a digest of the content."""
        body = RegisterBrokerBody(DataVersion(), self.topics, mapping_infos=self.mappings)
        return hashlib.sha256(encode_register_broker_body(body, version=V5_0_0, compressed=False)).hexdigest()

    def stored(self) -> StoredVersion:
        """Return the version to store."""
        return StoredVersion(self.version, self.digest())

    def _changed(self, topics: dict[str, TopicConfig], now_ms: int) -> "TopicTable":
        return replace(self, topics=_in_broker_order(topics), version=next_version(self.version, now_ms))


def initial_table(config: BrokerConfig, stored: StoredVersion | None, now_ms: int) -> TopicTable:
    """Return the table at the start: the broker's own topics, and the configured ones.

    Its data version is the stored one if the table is equal, else the next one."""
    topics = _by_name(starting_topics(config)) if config.starting_topics else {}
    topics |= _by_name(config.topics)
    mappings = {topic.topic: topic.mapping(config.broker_name) for topic in config.static_topics}
    table = TopicTable(_in_broker_order(topics), mappings, first_version(now_ms))
    if stored is None:
        return table
    known = replace(table, version=stored.data_version)
    return known if table.digest() == stored.table_digest else known.newer(now_ms)


def starting_topics(config: BrokerConfig) -> Iterable[TopicConfig]:
    """Yield the topics that brokers of 4.8.0 and 5.5.0 create at their start."""
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
    if config.is_5x:
        yield _topic(f"rmq_sys_REVIVE_LOG_{cluster}", 8)
        yield _topic(f"{SYNC_BROKER_MEMBER_PREFIX}{name}", 1, PERM_INHERIT)
        yield _topic("RMQ_SYS_TRANS_HALF_TOPIC", 1)
        yield _topic("RMQ_SYS_TRANS_OP_HALF_TOPIC", 1)
        yield _topic("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", 1)
        yield _topic("RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC", 1)
        yield _topic("rmq_sys_wheel_timer", 1)


def _topic(name: str, queues: int, perm: int = _READ_WRITE) -> TopicConfig:
    return TopicConfig(name, queues, queues, perm)


class TopicBatch(msgspec.Struct, frozen=True):
    """The topics and static topics of one registration."""

    topics: dict[str, TopicConfig]
    mappings: dict[str, TopicQueueMappingInfo]


def full_batch(table: TopicTable, config: BrokerConfig) -> TopicBatch:
    """Return all topics in one batch."""
    return TopicBatch(_in_batch_order(table.topics, config, len(table.topics)), table.mappings)


def split_batches(table: TopicTable, config: BrokerConfig) -> list[TopicBatch]:
    """Return all topics in batches of splitRegistrationSize; the last one, maybe empty, has the static topics."""
    size = config.split_registration_size
    entries = min(size, len(table.topics))
    left = list(table.topics.values())
    batches = []
    while len(left) >= size:
        batches.append(TopicBatch(_in_batch_order(_by_name(left[:size]), config, entries), {}))
        del left[:size]
    return [*batches, TopicBatch(_in_batch_order(_by_name(left), config, entries), table.mappings)]


def increment_batch(table: TopicTable, config: BrokerConfig, names: Collection[str]) -> TopicBatch:
    """Return a batch with these topics only."""
    topics = {name: table.topics[name] for name in names}
    mappings = {name: table.mappings[name] for name in names if name in table.mappings}
    return TopicBatch(_in_batch_order(topics, config, len(topics)), mappings)


def with_broker_permission(topic: TopicConfig, config: BrokerConfig) -> TopicConfig:
    """Return the topic as a broker without read or write permission registers it.

    4.x replaces the topic's permission by its own, 5.x removes what it lacks."""
    own = config.broker_permission
    if own & _READ_WRITE == _READ_WRITE:
        return topic
    return replace(topic, perm=topic.perm & own if config.is_5x else own)


def _in_batch_order(
    topics: dict[str, TopicConfig], config: BrokerConfig, entries: int
) -> dict[str, TopicConfig]:
    """Return the topics in the order of the map that a Java broker copies them to, which had at most `entries`."""
    own, compressed = config.broker_permission, config.compressed_register
    is_restricted = own & _READ_WRITE != _READ_WRITE
    if is_restricted:
        topics = {name: with_broker_permission(topic, config) for name, topic in topics.items()}
    if config.is_5x or is_restricted or compressed:
        topics = in_java_order(topics, grown(entries, _COPY_BUCKETS))
    if config.is_5x and compressed:
        topics = in_java_order(topics, copied(entries))
    return topics


def _by_name(topics: Iterable[TopicConfig]) -> dict[str, TopicConfig]:
    return {topic.topic_name: topic for topic in topics}


def _in_broker_order(topics: dict[str, TopicConfig]) -> dict[str, TopicConfig]:
    return in_java_order(topics, grown(len(topics), _TABLE_BUCKETS))
