"""What a name server can be asked: a function for each request code, which gives a Call.

The ext fields are those that RocketMQ 5.5.0 sends, in its order; a lookup of what is not there gives None."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from client.wire.call import Call
from client.wire.request import Request
from remoting.cluster import BrokerMemberGroup, ClusterInfo, decode_broker_member_group, decode_cluster_info
from remoting.codes import RequestCode, ResponseCode
from remoting.command import Command
from remoting.data_version import DataVersion, decode_data_version
from remoting.json_out import Dialect, encode_json
from remoting.kv_table import KVTable, decode_kv_table
from remoting.properties import PropertiesError, format_properties, parse_properties, write_properties
from remoting.registration import body_crc32
from remoting.route import QueueData, TopicRouteData, decode_route, encode_route
from remoting.topic_list import TopicList, decode_topic_list

T = TypeVar("T")
_OR_NOT_FOUND: Final = frozenset({ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND})
_OR_NO_TOPIC: Final = frozenset({ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST})


class BrokerIdentity(msgspec.Struct, frozen=True):
    """Which broker speaks; `broker_addr` is `host:port`, and id 0 is the master."""

    cluster_name: str
    broker_name: str
    broker_addr: str
    broker_id: int = 0


class Registered(msgspec.Struct, frozen=True):
    """What a registration is told: the master and its replication address, if it is not the master itself, and the
    topics with a fixed order of queues, if there are any."""

    ha_server_addr: str | None
    master_addr: str | None
    order_topics: KVTable | None


class VersionAnswer(msgspec.Struct, frozen=True):
    """Whether a data version is another than the stored one (true if the answer does not say), and that one."""

    changed: bool
    data_version: DataVersion | None


# KV configuration


def put_kv_config(namespace: str, key: str, value: str) -> Call[None]:
    """Set a key of a namespace (100)."""
    ext = {"namespace": namespace, "value": value, "key": key}
    return Call(Request(RequestCode.PUT_KV_CONFIG, ext), _nothing)


def get_kv_config(namespace: str, key: str) -> Call[str | None]:
    """The value of a key, None if it is not set (101)."""
    ext = {"namespace": namespace, "key": key}
    return Call(Request(RequestCode.GET_KV_CONFIG, ext), lambda answer: answer.get("value"), _OR_NOT_FOUND)


def delete_kv_config(namespace: str, key: str) -> Call[None]:
    """Remove a key, whether it was set or not (102)."""
    return Call(Request(RequestCode.DELETE_KV_CONFIG, {"namespace": namespace, "key": key}), _nothing)


def get_kv_list(namespace: str) -> Call[KVTable | None]:
    """All keys of a namespace, None if it never had one (219)."""
    request = Request(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": namespace})
    return Call(request, _found(decode_kv_table), _OR_NOT_FOUND)


# what brokers say


def register_broker(
    broker: BrokerIdentity,
    body: bytes,
    *,
    ha_server_addr: str,
    compressed: bool = False,
    enable_acting_master: bool | None = None,
    heartbeat_timeout_ms: int | None = None,
) -> Call[Registered]:
    """Register a broker and its topics (103).

    `body` is what remoting.registration.encode_register_broker_body gives, and `compressed` whether it is so.
    Brokers of 4.x say nothing of an acting master; `heartbeat_timeout_ms` is how long the registration is good
    without a further one, if not 120 s."""
    ext = {
        **_given("heartbeatTimeoutMillis", heartbeat_timeout_ms),
        "brokerId": str(broker.broker_id),
        "bodyCrc32": str(body_crc32(body)),
        "clusterName": broker.cluster_name,
        "brokerAddr": broker.broker_addr,
        **_given("enableActingMaster", enable_acting_master),
        "haServerAddr": ha_server_addr,
        "compressed": _text(compressed),
        "brokerName": broker.broker_name,
    }
    return Call(Request(RequestCode.REGISTER_BROKER, ext, body), _registered)


def unregister_broker(broker: BrokerIdentity) -> Call[None]:
    """Take a broker out (104)."""
    return Call(Request(RequestCode.UNREGISTER_BROKER, _identity(broker)), _nothing)


def query_data_version(
    broker: BrokerIdentity, data_version: DataVersion, *, as_4x: bool = False
) -> Call[VersionAnswer]:
    """Whether a broker with this version has to register anew (322); it counts as a heartbeat.

    `as_4x`: without the state version, as brokers of 4.x write it."""
    body = data_version.encode_4x() if as_4x else data_version.encode()
    return Call(Request(RequestCode.QUERY_DATA_VERSION, _identity(broker), body), _version_answer)


def broker_heartbeat(broker: BrokerIdentity) -> Call[None]:
    """A broker lives (904); mostly sent oneway."""
    ext = {
        "clusterName": broker.cluster_name,
        "brokerAddr": broker.broker_addr,
        "brokerName": broker.broker_name,
    }
    return Call(Request(RequestCode.BROKER_HEARTBEAT, ext), _nothing)


def register_topic(topic: str, queue_datas: Sequence[QueueData]) -> Call[None]:
    """Add one topic to brokers that are registered (217, from 5.0 on)."""
    body = encode_route(TopicRouteData((), tuple(queue_datas)), Dialect.LEGACY)
    return Call(Request(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": topic}, body), _nothing)


# routes, brokers and topics


def get_route(topic: str) -> Call[TopicRouteData | None]:
    """Who serves a topic, None if nobody does (105)."""
    request = Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    return Call(request, _found(decode_route), _OR_NO_TOPIC)


def get_cluster_info() -> Call[ClusterInfo]:
    """All clusters and their brokers (106)."""
    return Call(Request(RequestCode.GET_BROKER_CLUSTER_INFO), _body(decode_cluster_info))


def get_broker_member_group(cluster: str, broker_name: str) -> Call[BrokerMemberGroup]:
    """The brokers of one name, none if it is not known (901, from 5.0 on)."""
    ext = {"clusterName": cluster, "brokerName": broker_name}
    return Call(Request(RequestCode.GET_BROKER_MEMBER_GROUP, ext), _body(decode_broker_member_group))


def get_topics() -> Call[TopicList]:
    """All topics (206)."""
    return _topics(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)


def get_topics_of_cluster(cluster: str) -> Call[TopicList]:
    """The topics of a cluster's brokers, none if there is no such cluster (224)."""
    return _topics(RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": cluster})


def get_system_topics() -> Call[TopicList]:
    """The names of clusters and brokers, which are topics too, and a broker that knows more (304)."""
    return _topics(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)


def get_unit_topics() -> Call[TopicList]:
    """Topics with the unit flag (311)."""
    return _topics(RequestCode.GET_UNIT_TOPIC_LIST)


def get_unit_sub_topics() -> Call[TopicList]:
    """Topics with the flag for unit subscriptions (312)."""
    return _topics(RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST)


def get_unit_sub_ununit_topics() -> Call[TopicList]:
    """Topics with the flag for unit subscriptions and without the unit flag (313)."""
    return _topics(RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST)


def delete_topic(topic: str, cluster: str | None = None) -> Call[None]:
    """Forget a topic, of one cluster's brokers or of all (216); it comes back when a broker that has it registers."""
    ext = _given("clusterName", cluster) | {"topic": topic}
    return Call(Request(RequestCode.DELETE_TOPIC_IN_NAMESRV, ext), _nothing)


def wipe_write_perm(broker_name: str) -> Call[int]:
    """Take the write permission from all topics of a broker name; how many it has (205)."""
    return _counted(RequestCode.WIPE_WRITE_PERM_OF_BROKER, broker_name, "wipeTopicCount")


def add_write_perm(broker_name: str) -> Call[int]:
    """Make all topics of a broker name readable and writable; how many it has (327, from 4.9.2 on)."""
    return _counted(RequestCode.ADD_WRITE_PERM_OF_BROKER, broker_name, "addTopicCount")


# the name server itself


def update_config(entries: Mapping[str, str]) -> Call[None]:
    """Set options of the name server (318)."""
    plain = format_properties(entries)
    text = plain if _reads_back(plain, entries) else write_properties(entries)
    return Call(Request(RequestCode.UPDATE_NAMESRV_CONFIG, None, text.encode()), _nothing)


def get_config() -> Call[dict[str, str]]:
    """All options of the name server (319)."""
    return Call(Request(RequestCode.GET_NAMESRV_CONFIG), _properties)


def get_client_config(keys: Sequence[str]) -> Call[dict[str, str]]:
    """Those of these client options that the name server has (47; only RocketMQ 5.0.0 to 5.1.3 answer it)."""
    return Call(Request(RequestCode.GET_CLIENT_CONFIG, None, encode_json({"keys": list(keys)})), _properties)


# how answers are read


def _nothing(_: Command) -> None:
    return None


def _body(decode: Callable[[bytes], T]) -> Callable[[Command], T]:
    return lambda answer: decode(answer.body)


def _found(decode: Callable[[bytes], T]) -> Callable[[Command], T | None]:
    """The body of a success; None for the other code that is accepted."""
    return lambda answer: decode(answer.body) if answer.code == ResponseCode.SUCCESS else None


def _topics(code: RequestCode, ext: dict[str, str] | None = None) -> Call[TopicList]:
    return Call(Request(code, ext), _body(decode_topic_list))


def _counted(code: RequestCode, broker_name: str, field: str) -> Call[int]:
    return Call(Request(code, {"brokerName": broker_name}), lambda answer: int(answer.get(field) or 0))


def _registered(answer: Command) -> Registered:
    order_topics = decode_kv_table(answer.body) if answer.body else None
    return Registered(answer.get("haServerAddr"), answer.get("masterAddr"), order_topics)


def _version_answer(answer: Command) -> VersionAnswer:
    changed = answer.get("changed")
    version = decode_data_version(answer.body) if answer.body else None
    return VersionAnswer(changed is None or changed.lower() == "true", version)


def _properties(answer: Command) -> dict[str, str]:
    return parse_properties(answer.body.decode())


# how requests are written


def _identity(broker: BrokerIdentity) -> dict[str, str]:
    return {
        "brokerId": str(broker.broker_id),
        "clusterName": broker.cluster_name,
        "brokerAddr": broker.broker_addr,
        "brokerName": broker.broker_name,
    }


def _given(name: str, value: object | None) -> dict[str, str]:
    """The ext field, unless there is no value."""
    return {} if value is None else {name: _text(value)}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reads_back(text: str, entries: Mapping[str, str]) -> bool:
    try:
        return parse_properties(text) == entries
    except PropertiesError:
        return False
