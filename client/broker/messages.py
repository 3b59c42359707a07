"""What a broker asks of name servers, as requests.

Ext fields stand in the order in which Java sends them."""

from collections.abc import Mapping

from client.broker.config import BrokerConfig
from client.broker.java_order import in_java_order
from client.broker.topics import SYNC_BROKER_MEMBER_PREFIX
from client.broker.versions import first_version
from client.wire.request import Request
from remoting.codes import RequestCode
from remoting.data_version import DataVersion
from remoting.json_out import Dialect
from remoting.register_broker_body import RegisterBrokerBody
from remoting.registration import body_crc32, encode_register_broker_body
from remoting.route import QueueData, TopicRouteData, encode_route
from remoting.topic_config import TopicConfig
from remoting.topic_queue_mapping import TopicQueueMappingInfo

_BUCKETS, _BUCKETS_WITH_ZONE = 16, 256


def registration(
    config: BrokerConfig,
    topics: dict[str, TopicConfig],
    mappings: dict[str, TopicQueueMappingInfo],
    version: DataVersion,
    now_ms: int,
) -> Request:
    """REGISTER_BROKER (103) with these topics. A broker of 5.x makes `mappingDataVersion` anew each time."""
    compressed = config.compressed_register
    body = encode_register_broker_body(
        RegisterBrokerBody(
            version, topics, mapping_infos=mappings, mapping_data_version=first_version(now_ms)
        ),
        version=config.ordinal,
        compressed=compressed,
    )
    said = compressed and not (config.plays_5x and config.keep_compressed_bug)
    ext = _identity(config) | {
        "haServerAddr": config.ha_server_addr,
        "compressed": _text(said),
        "bodyCrc32": str(body_crc32(body)),
    }
    if config.plays_5x:
        ext["enableActingMaster"] = _text(config.enable_slave_acting_master)
        if config.enable_slave_acting_master:
            ext["heartbeatTimeoutMillis"] = str(config.broker_not_active_timeout_millis)
    return Request(RequestCode.REGISTER_BROKER, _sent(config, ext), body)


def unregistration(config: BrokerConfig) -> Request:
    """UNREGISTER_BROKER (104)."""
    return Request(RequestCode.UNREGISTER_BROKER, _sent(config, _identity(config)))


def version_query(config: BrokerConfig, version: DataVersion) -> Request:
    """QUERY_DATA_VERSION (322): whether a name server knows this one."""
    body = version.encode() if config.plays_5x else version.encode_4x()
    return Request(RequestCode.QUERY_DATA_VERSION, _sent(config, _identity(config)), body)


def heartbeat(config: BrokerConfig, version: DataVersion) -> Request:
    """BROKER_HEARTBEAT (904), or the request that name servers older than 5.0 take for one."""
    if config.compatible_with_old_name_srv:
        return version_query(config, version)
    ext = {
        "clusterName": config.broker_cluster_name,
        "brokerAddr": config.broker_addr,
        "brokerName": config.broker_name,
    }
    return Request(RequestCode.BROKER_HEARTBEAT, _sent(config, ext))


def member_group(config: BrokerConfig) -> Request:
    """GET_BROKER_MEMBER_GROUP (901); of older name servers, the route of a topic that every broker of the name has."""
    if config.compatible_with_old_name_srv:
        ext = {"topic": f"{SYNC_BROKER_MEMBER_PREFIX}{config.broker_name}"}
        return Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, _sent(config, ext))
    ext = {"clusterName": config.broker_cluster_name, "brokerName": config.broker_name}
    return Request(RequestCode.GET_BROKER_MEMBER_GROUP, _sent(config, ext))


def cluster_info(config: BrokerConfig) -> Request:
    """GET_BROKER_CLUSTER_INFO (106)."""
    return Request(RequestCode.GET_BROKER_CLUSTER_INFO, _sent(config, {}) or None)


def single_topic(config: BrokerConfig, topic: TopicConfig) -> Request:
    """REGISTER_TOPIC_IN_NAMESRV (217)."""
    queues = QueueData(
        config.broker_name, topic.read_queue_nums, topic.write_queue_nums, topic.perm, topic.topic_sys_flag
    )
    body = encode_route(TopicRouteData((), (queues,)), Dialect.LEGACY)
    return Request(RequestCode.REGISTER_TOPIC_IN_NAMESRV, _sent(config, {"topic": topic.topic_name}), body)


def _identity(config: BrokerConfig) -> dict[str, str]:
    return {
        "brokerName": config.broker_name,
        "brokerAddr": config.broker_addr,
        "clusterName": config.broker_cluster_name,
        "brokerId": str(config.broker_id),
    }


def _sent(config: BrokerConfig, ext: Mapping[str, str]) -> dict[str, str]:
    """All fields of a request, in Java's order: a broker with a zone names it in whatever it asks."""
    zone = {}
    if config.plays_5x and config.zone_name:
        zone["__ZONE_NAME"] = config.zone_name
        if config.zone_mode:
            zone["__ZONE_MODE"] = _text(True)
    return in_java_order({**ext, **zone}, _BUCKETS_WITH_ZONE if zone else _BUCKETS)


def _text(value: bool) -> str:
    return str(value).lower()
