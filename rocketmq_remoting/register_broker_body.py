"""RegisterBrokerBody: the decoded body of a registration, independent of its layout."""

from collections.abc import Set
from typing import TypeAlias

import msgspec

from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo

FilterServerList: TypeAlias = tuple[str, ...] | str | None
"""What a body may have as its filterServerList."""


class RegisterBrokerBody(msgspec.Struct, frozen=True):
    """`topics` by the topicName in the config, or by their key if it has none; the last of equal names counts.
    `topic_keys` are the keys of the table as sent, by which RocketMQ decides which topics a registration removed.
    `filter_servers` None leaves the stored filter servers unchanged, empty removes them. `mapping_infos` are the
    broker's static topics by topic."""

    data_version: DataVersion
    topics: dict[str, TopicConfig] = {}
    topic_keys: Set[str] = frozenset()
    filter_servers: tuple[str, ...] | None = ()
    mapping_infos: dict[str, TopicQueueMappingInfo] = {}
    mapping_data_version: DataVersion | None = None


def filter_servers_in(servers: FilterServerList) -> tuple[str, ...] | None:
    """Return the filter servers of a body. As in RocketMQ 5.5.0, a text is a list of this one, an empty one of none."""
    if isinstance(servers, str):
        return (servers,) if servers else ()
    return servers
