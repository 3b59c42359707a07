"""The calls of a broker to name servers."""

from typing import TypeVar

from msgspec.structs import replace

from mqns.broker.config import BrokerConfig
from mqns.broker.java_order import in_java_order
from mqns.broker.topics import SYNC_BROKER_MEMBER_PREFIX, TopicBatch, with_broker_permission
from mqns.broker.versions import first_version
from mqns.name_server import calls
from mqns.name_server.calls import BrokerIdentity, QueryDataVersionResult, RegisterBrokerResult
from mqns.remoting.call import Call
from mqns.remoting.zone import Zone
from rocketmq_remoting.command import Command
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.register_broker_body import RegisterBrokerBody
from rocketmq_remoting.registration import encode_register_broker_body
from rocketmq_remoting.route import QueueData
from rocketmq_remoting.topic_config import TopicConfig

T = TypeVar("T")
_BUCKETS_WITH_ZONE = 256


def registration(
    config: BrokerConfig, batch: TopicBatch, version: DataVersion, now_ms: int
) -> Call[RegisterBrokerResult]:
    """Register a batch of topics (103). `mappingDataVersion` is new each time, as in 5.x."""
    body = RegisterBrokerBody(
        version, batch.topics, mapping_infos=batch.mappings, mapping_data_version=first_version(now_ms)
    )
    compressed, acting = config.compressed_register, config.enable_slave_acting_master
    call = calls.register_broker(
        _identity(config),
        encode_register_broker_body(body, version=config.ordinal, compressed=compressed),
        ha_server_addr=config.ha_server_addr,
        compressed=compressed and not (config.is_5x and config.keep_compressed_bug),
        enable_acting_master=acting if config.is_5x else None,
        heartbeat_timeout_ms=config.broker_not_active_timeout_millis if config.is_5x and acting else None,
    )
    return _in_zone(config, call)


def unregistration(config: BrokerConfig) -> Call[None]:
    """Unregister the broker (104)."""
    return _in_zone(config, calls.unregister_broker(_identity(config)))


def version_query(config: BrokerConfig, version: DataVersion) -> Call[QueryDataVersionResult]:
    """Ask whether a name server has this version (322)."""
    return _in_zone(config, calls.query_data_version(_identity(config), version, as_4x=not config.is_5x))


def heartbeat(config: BrokerConfig, version: DataVersion) -> Call[QueryDataVersionResult] | Call[None]:
    """Send a heartbeat: 904, or 322, which name servers before 5.0 take as one."""
    if config.compatible_with_old_name_srv:
        return version_query(config, version)
    return _in_zone(config, calls.broker_heartbeat(_identity(config)))


def member_group(config: BrokerConfig) -> Call[dict[int, str]]:
    """Return broker id -> address of all brokers of its name (901); with older name servers by the route of a topic
    that each of them registers (105)."""
    name = config.broker_name
    if not config.compatible_with_old_name_srv:
        group = _in_zone(config, calls.get_broker_member_group(config.broker_cluster_name, name))
        return Call(group.request, lambda response: group.read(response).broker_addrs)
    route = _in_zone(config, calls.get_route(f"{SYNC_BROKER_MEMBER_PREFIX}{name}"))

    def members(response: Command) -> dict[int, str]:
        found = route.read(response)
        datas = found.broker_datas if found else ()
        return next((data.broker_addrs for data in datas if data.broker_name == name), {})

    return Call(route.request, members, route.accepts)


def cluster_info(config: BrokerConfig) -> Call[None]:
    """Request the cluster info (106), whose response is ignored."""
    return Call(_in_zone(config, calls.get_cluster_info()).request, lambda response: None)


def single_topic(config: BrokerConfig, topic: TopicConfig) -> Call[None]:
    """Add or replace one topic of the broker (217)."""
    topic = with_broker_permission(topic, config)
    queues = QueueData(
        config.broker_name, topic.read_queue_nums, topic.write_queue_nums, topic.perm, topic.topic_sys_flag
    )
    return _in_zone(config, calls.register_topic(topic.topic_name, [queues]))


def _identity(config: BrokerConfig) -> BrokerIdentity:
    return BrokerIdentity(
        config.broker_cluster_name, config.broker_name, config.broker_addr, config.broker_id
    )


def _in_zone(config: BrokerConfig, call: Call[T]) -> Call[T]:
    """Return the call with the broker's zone, if it has one; the fields are then in the order of Java's map."""
    if not (config.is_5x and config.zone_name):
        return call
    request = Zone(config.zone_name, config.zone_mode)("", call.request)
    return replace(call, request=replace(request, ext=in_java_order(request.ext or {}, _BUCKETS_WITH_ZONE)))
