"""What this broker asks of name servers."""

from typing import TypeVar

from msgspec.structs import replace

from client.broker.config import BrokerConfig
from client.broker.java_order import in_java_order
from client.broker.topics import SYNC_BROKER_MEMBER_PREFIX, Piece, restricted
from client.broker.versions import first_version
from client.name_server import calls
from client.name_server.calls import BrokerIdentity, Registered, VersionAnswer
from client.wire.call import Call
from client.wire.zone import Zone
from remoting.command import Command
from remoting.data_version import DataVersion
from remoting.register_broker_body import RegisterBrokerBody
from remoting.registration import encode_register_broker_body
from remoting.route import QueueData
from remoting.topic_config import TopicConfig

T = TypeVar("T")
_BUCKETS_WITH_ZONE = 256


def registration(config: BrokerConfig, piece: Piece, version: DataVersion, now_ms: int) -> Call[Registered]:
    """Register with these topics (103). A broker of 5.x makes `mappingDataVersion` anew each time."""
    body = RegisterBrokerBody(
        version, piece.topics, mapping_infos=piece.mappings, mapping_data_version=first_version(now_ms)
    )
    compressed, acting = config.compressed_register, config.enable_slave_acting_master
    call = calls.register_broker(
        _identity(config),
        encode_register_broker_body(body, version=config.ordinal, compressed=compressed),
        ha_server_addr=config.ha_server_addr,
        compressed=compressed and not (config.plays_5x and config.keep_compressed_bug),
        enable_acting_master=acting if config.plays_5x else None,
        heartbeat_timeout_ms=config.broker_not_active_timeout_millis if config.plays_5x and acting else None,
    )
    return _in_zone(config, call)


def unregistration(config: BrokerConfig) -> Call[None]:
    """Take it out (104)."""
    return _in_zone(config, calls.unregister_broker(_identity(config)))


def version_query(config: BrokerConfig, version: DataVersion) -> Call[VersionAnswer]:
    """Whether a name server knows this version (322)."""
    return _in_zone(config, calls.query_data_version(_identity(config), version, as_4x=not config.plays_5x))


def heartbeat(config: BrokerConfig, version: DataVersion) -> Call[VersionAnswer] | Call[None]:
    """It lives (904), or the request that name servers older than 5.0 take for that."""
    if config.compatible_with_old_name_srv:
        return version_query(config, version)
    return _in_zone(config, calls.broker_heartbeat(_identity(config)))


def member_group(config: BrokerConfig) -> Call[dict[int, str]]:
    """Broker id -> address of all brokers of its name (901); older name servers tell it in the route of a topic that
    each of them has."""
    name = config.broker_name
    if not config.compatible_with_old_name_srv:
        group = _in_zone(config, calls.get_broker_member_group(config.broker_cluster_name, name))
        return Call(group.request, lambda answer: group.read(answer).broker_addrs)
    route = _in_zone(config, calls.get_route(f"{SYNC_BROKER_MEMBER_PREFIX}{name}"))

    def members(answer: Command) -> dict[int, str]:
        found = route.read(answer)
        datas = found.broker_datas if found else ()
        return next((data.broker_addrs for data in datas if data.broker_name == name), {})

    return Call(route.request, members, route.accepts)


def cluster_info(config: BrokerConfig) -> Call[None]:
    """All clusters (106); what is answered is for nobody."""
    return Call(_in_zone(config, calls.get_cluster_info()).request, lambda answer: None)


def single_topic(config: BrokerConfig, topic: TopicConfig) -> Call[None]:
    """Add or replace one topic of it (217)."""
    topic = restricted(topic, config)
    queues = QueueData(
        config.broker_name, topic.read_queue_nums, topic.write_queue_nums, topic.perm, topic.topic_sys_flag
    )
    return _in_zone(config, calls.register_topic(topic.topic_name, [queues]))


def _identity(config: BrokerConfig) -> BrokerIdentity:
    return BrokerIdentity(
        config.broker_cluster_name, config.broker_name, config.broker_addr, config.broker_id
    )


def _in_zone(config: BrokerConfig, call: Call[T]) -> Call[T]:
    """A broker with a zone names it in whatever it asks; the fields then are in another order."""
    if not (config.plays_5x and config.zone_name):
        return call
    request = Zone(config.zone_name, config.zone_mode)("", call.request)
    return replace(call, request=replace(request, ext=in_java_order(request.ext or {}, _BUCKETS_WITH_ZONE)))
