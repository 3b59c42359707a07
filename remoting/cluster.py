"""ClusterInfo (answer of 106) and BrokerMemberGroup (answer of 901), always in the legacy dialect."""

import msgspec
from msgspec import Raw

from remoting.integers import Int64
from remoting.json_in import decode_json, without_nulls
from remoting.json_out import Dialect, encode_json, number_map
from remoting.route import BrokerData, BrokerDataMembers, WrittenBrokerData, written_broker_data


class ClusterInfo(msgspec.Struct, frozen=True):
    """`broker_addr_table` by broker name; `cluster_addr_table` lists the broker names of each cluster."""

    broker_addr_table: dict[str, BrokerData]
    cluster_addr_table: dict[str, tuple[str, ...]]


class BrokerMemberGroup(msgspec.Struct, frozen=True):
    """The brokers of one name, by id; `cluster` is the one the request named, None where it named none."""

    cluster: str | None
    broker_name: str | None
    broker_addrs: dict[int, str]


def encode_cluster_info(info: ClusterInfo) -> bytes:
    """`{"brokerAddrTable":{"b1":{…}},"clusterAddrTable":{"c1":["b1"]}}`, names in the order given."""
    table = info.broker_addr_table
    brokers = {name: written_broker_data(table[name], Dialect.LEGACY) for name in table}
    return encode_json(_WrittenClusterInfo(brokers, info.cluster_addr_table))


def decode_cluster_info(body: bytes) -> ClusterInfo:
    """Read it back. Raises BodyError."""
    members = decode_json(body, _ClusterInfoMembers)
    return ClusterInfo(
        {name: data.value() for name, data in (members.broker_addr_table or {}).items()},
        {name: names or () for name, names in (members.cluster_addr_table or {}).items()},
    )


def encode_broker_member_group(group: BrokerMemberGroup) -> bytes:
    """`{"brokerMemberGroup":{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"b1","cluster":"c1"}}`"""
    addrs = number_map(group.broker_addrs, Dialect.LEGACY)
    return encode_json(_WrittenAnswer(_WrittenGroup(addrs, group.broker_name, group.cluster)))


def decode_broker_member_group(body: bytes) -> BrokerMemberGroup:
    """Read it back; members that are missing are empty. Raises BodyError."""
    group = decode_json(body, _AnswerMembers).broker_member_group or _GroupMembers()
    return BrokerMemberGroup(group.cluster, group.broker_name, without_nulls(group.broker_addrs))


class _WrittenClusterInfo(msgspec.Struct, gc=False, rename="camel"):
    broker_addr_table: dict[str, WrittenBrokerData]
    cluster_addr_table: dict[str, tuple[str, ...]]


class _ClusterInfoMembers(msgspec.Struct, rename="camel"):
    broker_addr_table: dict[str, BrokerDataMembers] | None = None
    cluster_addr_table: dict[str, tuple[str, ...] | None] | None = None


class _WrittenGroup(msgspec.Struct, gc=False, omit_defaults=True, rename="camel"):
    broker_addrs: Raw
    broker_name: str | None = None
    cluster: str | None = None


class _WrittenAnswer(msgspec.Struct, gc=False, rename="camel"):
    broker_member_group: _WrittenGroup


class _GroupMembers(msgspec.Struct, rename="camel"):
    broker_addrs: dict[Int64, str | None] | None = None
    broker_name: str | None = None
    cluster: str | None = None


class _AnswerMembers(msgspec.Struct, rename="camel"):
    broker_member_group: _GroupMembers | None = None
