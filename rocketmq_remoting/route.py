"""TopicRouteData: the brokers and queues of a topic. Response body of GET_ROUTEINFO_BY_TOPIC (105), body of 217."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from rocketmq_remoting.integers import Int32, Int64
from rocketmq_remoting.json_decoding import decode_json, without_nulls
from rocketmq_remoting.json_encoding import Dialect, encode_json, number_map
from rocketmq_remoting.topic_queue_mapping import (
    MappingInfoMembers,
    TopicQueueMappingInfo,
    decode_mapping_info,
    encode_mapping_info,
)

__all__ = [
    "BrokerData",
    "QueueData",
    "TopicQueueMappingInfo",
    "TopicRouteData",
    "decode_mapping_info",
    "decode_route",
    "encode_mapping_info",
    "encode_route",
]


class QueueData(msgspec.Struct, frozen=True, gc=False):
    """The queues of one topic on the brokers of one name."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int


class BrokerData(msgspec.Struct, frozen=True):
    """The brokers of one name; `broker_addrs` maps broker id to `host:port`, id 0 is the master."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str]
    enable_acting_master: bool = False
    zone_name: str | None = None


class TopicRouteData(msgspec.Struct, frozen=True):
    """The route of a topic; `filter_server_table` maps a broker's address to its filter servers."""

    broker_datas: tuple[BrokerData, ...]
    queue_datas: tuple[QueueData, ...]
    filter_server_table: dict[str, tuple[str, ...]] = {}
    order_topic_conf: str | None = None
    topic_queue_mapping_by_broker: dict[str, TopicQueueMappingInfo] | None = None


def encode_route(route: TopicRouteData, dialect: Dialect, *, v5_members: bool = True) -> bytes:
    """Return the response body of GET_ROUTEINFO_BY_TOPIC; text keys of maps are sorted.

    Without `v5_members` it has no acting master, zone or static topics, as in 4.9."""
    brokers = [written_broker_data(data, dialect) for data in route.broker_datas]
    mappings = _written_mappings(route.topic_queue_mapping_by_broker, dialect)
    if not v5_members:
        brokers = [replace(data, enable_acting_master=None, zone_name=None) for data in brokers]
        mappings = None
    return encode_json(
        _WrittenRoute(
            broker_datas=brokers,
            filter_server_table=dict(sorted(route.filter_server_table.items())),
            order_topic_conf=route.order_topic_conf,
            queue_datas=[_written_queue_data(data) for data in route.queue_datas],
            topic_queue_mapping_by_broker=mappings,
        )
    )


def decode_route(body: bytes) -> TopicRouteData:
    """Return the route of a body in either dialect, of any release. Raises BodyError.

    Missing members have Java's defaults: 0 for the numbers of queue data, no brokers, no queues; a null in a list,
    or in place of the route, is a value without members."""
    members: _RouteMembers = decode_json(body, _OPTIONAL) or _RouteMembers()
    mappings = members.topic_queue_mapping_by_broker
    return TopicRouteData(
        tuple((data or BrokerDataMembers()).value() for data in members.broker_datas or ()),
        tuple((data or _QueueDataMembers()).value() for data in members.queue_datas or ()),
        {addr: servers or () for addr, servers in (members.filter_server_table or {}).items()},
        members.order_topic_conf,
        None if mappings is None else {name: info.value() for name, info in without_nulls(mappings).items()},
    )


def written_broker_data(data: BrokerData, dialect: Dialect) -> "WrittenBrokerData":
    """Return the broker data of a route or a cluster info, ready for `encode_json`."""
    addrs = number_map(data.broker_addrs, dialect)
    return WrittenBrokerData(addrs, data.broker_name, data.cluster, data.enable_acting_master, data.zone_name)


class WrittenBrokerData(msgspec.Struct, gc=False, omit_defaults=True, rename="camel"):
    """Members in the order in which Java writes them."""

    broker_addrs: Raw
    broker_name: str
    cluster: str
    enable_acting_master: bool | None = None
    zone_name: str | None = None


class _WrittenQueueData(msgspec.Struct, gc=False, rename="camel"):
    broker_name: str
    perm: int
    read_queue_nums: int
    topic_sys_flag: int
    write_queue_nums: int


class _WrittenRoute(msgspec.Struct, gc=False, omit_defaults=True, kw_only=True, rename="camel"):
    broker_datas: list[WrittenBrokerData]
    filter_server_table: dict[str, tuple[str, ...]]
    order_topic_conf: str | None = None
    queue_datas: list[_WrittenQueueData]
    topic_queue_mapping_by_broker: dict[str, Raw] | None = None


def _written_queue_data(data: QueueData) -> _WrittenQueueData:
    return _WrittenQueueData(
        data.broker_name, data.perm, data.read_queue_nums, data.topic_sys_flag, data.write_queue_nums
    )


def _written_mappings(
    mappings: Mapping[str, TopicQueueMappingInfo] | None, dialect: Dialect
) -> dict[str, Raw] | None:
    if mappings is None:
        return None
    return {name: Raw(encode_mapping_info(mappings[name], dialect)) for name in sorted(mappings)}


class BrokerDataMembers(msgspec.Struct, rename="camel"):
    """Broker data as peers send it: any member may be missing or null."""

    broker_addrs: dict[Int64, str | None] | None = None
    broker_name: str | None = None
    cluster: str | None = None
    enable_acting_master: bool | None = None
    zone_name: str | None = None

    def value(self) -> BrokerData:
        return BrokerData(
            self.cluster or "",
            self.broker_name or "",
            without_nulls(self.broker_addrs),
            bool(self.enable_acting_master),
            self.zone_name,
        )


class _QueueDataMembers(msgspec.Struct, rename="camel"):
    broker_name: str | None = None
    perm: Int32 | None = None
    read_queue_nums: Int32 | None = None
    topic_sys_flag: Int32 | None = None
    topic_syn_flag: Int32 | None = None  # the spelling of 4.8.0
    write_queue_nums: Int32 | None = None

    def value(self) -> QueueData:
        return QueueData(
            self.broker_name or "",
            self.read_queue_nums or 0,
            self.write_queue_nums or 0,
            self.perm or 0,
            self.topic_sys_flag or self.topic_syn_flag or 0,
        )


class _RouteMembers(msgspec.Struct, rename="camel"):
    broker_datas: list[BrokerDataMembers | None] | None = None
    filter_server_table: dict[str, tuple[str, ...] | None] | None = None
    order_topic_conf: str | None = None
    queue_datas: list[_QueueDataMembers | None] | None = None
    topic_queue_mapping_by_broker: dict[str, MappingInfoMembers | None] | None = None


_OPTIONAL: Final[Any] = _RouteMembers | None
