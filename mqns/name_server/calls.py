"""A function for each request code of a name server, which returns a Call.

The ext fields are those that RocketMQ 5.5.0 sends, in its order; a lookup of an unknown key or topic returns None."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from mqns.remoting.call import Call
from mqns.remoting.request import Request
from rocketmq_remoting.cluster import (
    BrokerMemberGroup,
    ClusterInfo,
    decode_broker_member_group,
    decode_cluster_info,
)
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.data_version import DataVersion, decode_data_version
from rocketmq_remoting.json_encoding import Dialect, encode_json
from rocketmq_remoting.kv_table import KVTable, decode_kv_table
from rocketmq_remoting.properties import (
    PropertiesError,
    format_properties,
    parse_properties,
    write_properties,
)
from rocketmq_remoting.registration import body_crc32
from rocketmq_remoting.route import QueueData, TopicRouteData, decode_route, encode_route
from rocketmq_remoting.topic_list import TopicList, decode_topic_list

T = TypeVar("T")
_OR_NOT_FOUND: Final = frozenset({ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND})
_OR_NO_TOPIC: Final = frozenset({ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST})


class BrokerIdentity(msgspec.Struct, frozen=True):
    """The identity of a broker; `broker_addr` is `host:port`, and id 0 is the master."""

    cluster_name: str
    broker_name: str
    broker_addr: str
    broker_id: int = 0


class RegisterBrokerResult(msgspec.Struct, frozen=True):
    """The response to a registration: master and replication address for a slave, and the order topics if there are
    any."""

    ha_server_addr: str | None
    master_addr: str | None
    order_topics: KVTable | None


class QueryDataVersionResult(msgspec.Struct, frozen=True):
    """Whether a data version differs from the stored one (True if the response has no such field), and the latter."""

    changed: bool
    data_version: DataVersion | None


# KV configuration


def put_kv_config(namespace: str, key: str, value: str) -> Call[None]:
    """Set a key of a namespace (100)."""
    ext = {"namespace": namespace, "value": value, "key": key}
    return Call(Request(RequestCode.PUT_KV_CONFIG, ext), _nothing)


def get_kv_config(namespace: str, key: str) -> Call[str | None]:
    """Return the value of a key, None if it is not set (101)."""
    ext = {"namespace": namespace, "key": key}
    return Call(
        Request(RequestCode.GET_KV_CONFIG, ext), lambda response: response.get("value"), _OR_NOT_FOUND
    )


def delete_kv_config(namespace: str, key: str) -> Call[None]:
    """Remove a key, whether it was set or not (102)."""
    return Call(Request(RequestCode.DELETE_KV_CONFIG, {"namespace": namespace, "key": key}), _nothing)


def get_kv_list(namespace: str) -> Call[KVTable | None]:
    """Return all keys of a namespace, None if it never had one (219)."""
    request = Request(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": namespace})
    return Call(request, _or_none(decode_kv_table), _OR_NOT_FOUND)


# requests of brokers


def register_broker(
    broker: BrokerIdentity,
    body: bytes,
    *,
    ha_server_addr: str,
    compressed: bool = False,
    enable_acting_master: bool | None = None,
    heartbeat_timeout_ms: int | None = None,
) -> Call[RegisterBrokerResult]:
    """Register a broker and its topics (103).

    `body` is of rocketmq_remoting.registration.encode_register_broker_body, `compressed` whether it is compressed.
    `enable_acting_master` is None for brokers of 4.x; `heartbeat_timeout_ms` is the lease of the registration,
    default 120 s."""
    ext = {
        **_optional("heartbeatTimeoutMillis", heartbeat_timeout_ms),
        "brokerId": str(broker.broker_id),
        "bodyCrc32": str(body_crc32(body)),
        "clusterName": broker.cluster_name,
        "brokerAddr": broker.broker_addr,
        **_optional("enableActingMaster", enable_acting_master),
        "haServerAddr": ha_server_addr,
        "compressed": _text(compressed),
        "brokerName": broker.broker_name,
    }
    return Call(Request(RequestCode.REGISTER_BROKER, ext, body), _registered)


def unregister_broker(broker: BrokerIdentity) -> Call[None]:
    """Unregister a broker (104)."""
    return Call(Request(RequestCode.UNREGISTER_BROKER, _identity(broker)), _nothing)


def query_data_version(
    broker: BrokerIdentity, data_version: DataVersion, *, as_4x: bool = False
) -> Call[QueryDataVersionResult]:
    """Ask whether a broker with this version must register again (322); counts as a heartbeat.

    `as_4x`: without the state version, as brokers of 4.x write it."""
    body = data_version.encode_4x() if as_4x else data_version.encode()
    return Call(Request(RequestCode.QUERY_DATA_VERSION, _identity(broker), body), _version_answer)


def broker_heartbeat(broker: BrokerIdentity) -> Call[None]:
    """Send a broker's heartbeat (904), usually oneway."""
    ext = {
        "clusterName": broker.cluster_name,
        "brokerAddr": broker.broker_addr,
        "brokerName": broker.broker_name,
    }
    return Call(Request(RequestCode.BROKER_HEARTBEAT, ext), _nothing)


def register_topic(topic: str, queue_datas: Sequence[QueueData]) -> Call[None]:
    """Add one topic to registered brokers (217, since 5.0)."""
    body = encode_route(TopicRouteData((), tuple(queue_datas)), Dialect.LEGACY)
    return Call(Request(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": topic}, body), _nothing)


# routes, brokers and topics


def get_route(topic: str) -> Call[TopicRouteData | None]:
    """Return the route of a topic, None without one (105)."""
    request = Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    return Call(request, _or_none(decode_route), _OR_NO_TOPIC)


def get_cluster_info() -> Call[ClusterInfo]:
    """Return all clusters and their brokers (106)."""
    return Call(Request(RequestCode.GET_BROKER_CLUSTER_INFO), _body(decode_cluster_info))


def get_broker_member_group(cluster: str, broker_name: str) -> Call[BrokerMemberGroup]:
    """Return the brokers of one name, none for an unknown name (901, since 5.0)."""
    ext = {"clusterName": cluster, "brokerName": broker_name}
    return Call(Request(RequestCode.GET_BROKER_MEMBER_GROUP, ext), _body(decode_broker_member_group))


def get_topics() -> Call[TopicList]:
    """Return all topics (206)."""
    return _topics(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)


def get_topics_of_cluster(cluster: str) -> Call[TopicList]:
    """Return the topics of a cluster's brokers, none for an unknown cluster (224)."""
    return _topics(RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": cluster})


def get_system_topics() -> Call[TopicList]:
    """Return the names of clusters and brokers, which are topics too, and a broker that lists more (304)."""
    return _topics(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)


def get_unit_topics() -> Call[TopicList]:
    """Return the topics with the unit flag (311)."""
    return _topics(RequestCode.GET_UNIT_TOPIC_LIST)


def get_unit_sub_topics() -> Call[TopicList]:
    """Return the topics with the flag of unit subscriptions (312)."""
    return _topics(RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST)


def get_unit_sub_ununit_topics() -> Call[TopicList]:
    """Return the topics with the flag of unit subscriptions and without the unit flag (313)."""
    return _topics(RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST)


def delete_topic(topic: str, cluster: str | None = None) -> Call[None]:
    """Delete a topic, of one cluster's brokers or of all (216); a registration of a broker that has it restores it."""
    ext = _optional("clusterName", cluster) | {"topic": topic}
    return Call(Request(RequestCode.DELETE_TOPIC_IN_NAMESRV, ext), _nothing)


def wipe_write_perm(broker_name: str) -> Call[int]:
    """Remove the write permission of all topics of a broker name and return their number (205)."""
    return _topic_count(RequestCode.WIPE_WRITE_PERM_OF_BROKER, broker_name, "wipeTopicCount")


def add_write_perm(broker_name: str) -> Call[int]:
    """Make all topics of a broker name readable and writable and return their number (327, since 4.9.2)."""
    return _topic_count(RequestCode.ADD_WRITE_PERM_OF_BROKER, broker_name, "addTopicCount")


# the name server itself


def update_config(entries: Mapping[str, str]) -> Call[None]:
    """Set options of the name server (318)."""
    plain = format_properties(entries)
    text = plain if _reads_back(plain, entries) else write_properties(entries)
    return Call(Request(RequestCode.UPDATE_NAMESRV_CONFIG, None, text.encode()), _nothing)


def get_config() -> Call[dict[str, str]]:
    """Return all options of the name server (319)."""
    return Call(Request(RequestCode.GET_NAMESRV_CONFIG), _properties)


def check_readiness() -> Call[None]:
    """Raise ResponseError unless the worker that answers follows changes and watches leases (19876).

    Only redis-namesrv has it."""
    return Call(Request(RequestCode.CHECK_READINESS), _nothing)


def get_client_config(keys: Sequence[str]) -> Call[dict[str, str]]:
    """Return the given client options that the name server has (47; RocketMQ 5.0.0 to 5.1.3 only)."""
    return Call(Request(RequestCode.GET_CLIENT_CONFIG, None, encode_json({"keys": list(keys)})), _properties)


# decoding of responses


def _nothing(_: Command) -> None:
    return None


def _body(decode: Callable[[bytes], T]) -> Callable[[Command], T]:
    return lambda response: decode(response.body)


def _or_none(decode: Callable[[bytes], T]) -> Callable[[Command], T | None]:
    """Return a reader of the body of a success; None for the other accepted code."""
    return lambda response: decode(response.body) if response.code == ResponseCode.SUCCESS else None


def _topics(code: RequestCode, ext: dict[str, str] | None = None) -> Call[TopicList]:
    return Call(Request(code, ext), _body(decode_topic_list))


def _topic_count(code: RequestCode, broker_name: str, field: str) -> Call[int]:
    return Call(Request(code, {"brokerName": broker_name}), lambda response: int(response.get(field) or 0))


def _registered(response: Command) -> RegisterBrokerResult:
    order_topics = decode_kv_table(response.body) if response.body else None
    return RegisterBrokerResult(response.get("haServerAddr"), response.get("masterAddr"), order_topics)


def _version_answer(response: Command) -> QueryDataVersionResult:
    changed = response.get("changed")
    version = decode_data_version(response.body) if response.body else None
    return QueryDataVersionResult(changed is None or changed.lower() == "true", version)


def _properties(response: Command) -> dict[str, str]:
    return parse_properties(response.body.decode())


# encoding of requests


def _identity(broker: BrokerIdentity) -> dict[str, str]:
    return {
        "brokerId": str(broker.broker_id),
        "clusterName": broker.cluster_name,
        "brokerAddr": broker.broker_addr,
        "brokerName": broker.broker_name,
    }


def _optional(name: str, value: object | None) -> dict[str, str]:
    """Return the ext field, or none for None."""
    return {} if value is None else {name: _text(value)}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reads_back(text: str, entries: Mapping[str, str]) -> bool:
    try:
        return parse_properties(text) == entries
    except PropertiesError:
        return False
