"""What a registration carries, whichever way it was encoded."""

from collections.abc import Set

import msgspec

from remoting.data_version import DataVersion
from remoting.topic_config import TopicConfig
from remoting.topic_queue_mapping import TopicQueueMappingInfo


class RegisterBrokerBody(msgspec.Struct, frozen=True):
    """`topics` by the topicName inside the config, the last of equal names; `topic_keys` are the keys of the
    table as sent, by which RocketMQ judges what a registration no longer has. `filter_servers` None leaves
    the broker's as they are, empty removes them. `mapping_infos` are the broker's static topics by topic."""

    data_version: DataVersion
    topics: dict[str, TopicConfig] = {}
    topic_keys: Set[str] = frozenset()
    filter_servers: tuple[str, ...] | None = ()
    mapping_infos: dict[str, TopicQueueMappingInfo] = {}
    mapping_data_version: DataVersion | None = None
