"""ClusterInfo (response body of 106) and BrokerMemberGroup (of 901), always in the legacy dialect."""

import msgspec
from msgspec import Raw

from rocketmq_remoting.integers import Int64
from rocketmq_remoting.json_decoding import decode_json, without_nulls
from rocketmq_remoting.json_encoding import Dialect, encode_json, number_map
from rocketmq_remoting.route import BrokerData, BrokerDataMembers, WrittenBrokerData, written_broker_data


class ClusterInfo(msgspec.Struct, frozen=True):
    """`broker_addr_table` by broker name; `cluster_addr_table` lists the broker names of each cluster."""

    broker_addr_table: dict[str, BrokerData]
    cluster_addr_table: dict[str, tuple[str, ...]]


class BrokerMemberGroup(msgspec.Struct, frozen=True):
    """Addresses of the brokers of one name, by broker id; `cluster` is the one the request named, or None."""

    cluster: str | None
    broker_name: str | None
    broker_addrs: dict[int, str]


def encode_cluster_info(info: ClusterInfo) -> bytes:
    """`{"brokerAddrTable":{"b1":{…}},"clusterAddrTable":{"c1":["b1"]}}`, names in the order given."""
    table = info.broker_addr_table
    brokers = {name: written_broker_data(table[name], Dialect.LEGACY) for name in table}
    return encode_json(_WrittenClusterInfo(brokers, info.cluster_addr_table))


def decode_cluster_info(body: bytes) -> ClusterInfo:
    """Return the cluster info. Raises BodyError."""
    members = decode_json(body, _ClusterInfoMembers)
    return ClusterInfo(
        {name: data.value() for name, data in (members.broker_addr_table or {}).items()},
        {name: names or () for name, names in (members.cluster_addr_table or {}).items()},
    )


def encode_broker_member_group(group: BrokerMemberGroup) -> bytes:
    """`{"brokerMemberGroup":{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"b1","cluster":"c1"}}`"""
    addrs = number_map(group.broker_addrs, Dialect.LEGACY)
    return encode_json(_WrittenMemberGroupBody(_WrittenMemberGroup(addrs, group.broker_name, group.cluster)))


def decode_broker_member_group(body: bytes) -> BrokerMemberGroup:
    """Return the member group; missing members are empty. Raises BodyError."""
    group = decode_json(body, _MemberGroupBodyMembers).broker_member_group or _MemberGroupMembers()
    return BrokerMemberGroup(group.cluster, group.broker_name, without_nulls(group.broker_addrs))


class _WrittenClusterInfo(msgspec.Struct, gc=False, rename="camel"):
    broker_addr_table: dict[str, WrittenBrokerData]
    cluster_addr_table: dict[str, tuple[str, ...]]


class _ClusterInfoMembers(msgspec.Struct, rename="camel"):
    broker_addr_table: dict[str, BrokerDataMembers] | None = None
    cluster_addr_table: dict[str, tuple[str, ...] | None] | None = None


class _WrittenMemberGroup(msgspec.Struct, gc=False, omit_defaults=True, rename="camel"):
    broker_addrs: Raw
    broker_name: str | None = None
    cluster: str | None = None


class _WrittenMemberGroupBody(msgspec.Struct, gc=False, rename="camel"):
    broker_member_group: _WrittenMemberGroup


class _MemberGroupMembers(msgspec.Struct, rename="camel"):
    broker_addrs: dict[Int64, str | None] | None = None
    broker_name: str | None = None
    cluster: str | None = None


class _MemberGroupBodyMembers(msgspec.Struct, rename="camel"):
    broker_member_group: _MemberGroupMembers | None = None
