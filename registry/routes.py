"""Routes of topics (105): what the store has of one, and the answer that a client's request makes of it."""

from collections.abc import Iterable

import msgspec

from registry.errors import TopicNotFound
from registry.keys import ORDER_TOPIC_CONFIG, Keys
from registry.plans import Plan, ScriptCall
from registry.queue_text import queue_data
from remoting.permission import PERM_WRITE
from remoting.route import BrokerData, QueueData, TopicRouteData
from remoting.topic_queue_mapping import TopicQueueMappingInfo, decode_mapping_info

SYNC_MEMBER_TOPIC = "rmq_sys_SYNC_BROKER_MEMBER_"


class StoredBroker(msgspec.Struct, frozen=True):
    """One broker name of a route, at least one of its members living."""

    data: BrokerData
    queues: QueueData
    filters: dict[str, tuple[str, ...]]
    mapping: TopicQueueMappingInfo | None


class StoredRoute(msgspec.Struct, frozen=True):
    """A topic as the store has it now. `names` are all broker names found, those left out too: whatever changes
    one of them may change the route."""

    topic: str
    brokers: tuple[StoredBroker, ...]
    names: frozenset[str]
    order_conf: str | None = None


class RouteView(msgspec.Struct, frozen=True):
    """What a request and the settings make of a stored route.

    `zone` filters by zone name (None: no filter); `acting_master` is supportActingMaster, `order` orderMessageEnable.
    """

    zone: str | None = None
    acting_master: bool = False
    order: bool = False


def read_route(keys: Keys, topic: str) -> Plan[StoredRoute]:
    """All of a topic's route, read at one moment."""
    reply = yield ScriptCall(
        "route",
        (keys.events_meta, keys.route(topic), keys.mapping(topic), keys.leases, keys.kv(ORDER_TOPIC_CONFIG)),
        (topic,),
    )
    order_conf, *rows = reply
    brokers = tuple(_stored_broker(row) for row in rows if row[1])
    return StoredRoute(topic, brokers, frozenset(row[0] for row in rows), order_conf or None)


def route_of(stored: StoredRoute, view: RouteView) -> TopicRouteData:
    """The answer (RocketMQ RouteInfoManager.pickupTopicRouteData, ZoneRouteRPCHook). Raises TopicNotFound."""
    if not stored.brokers:
        raise TopicNotFound(stored.topic)
    acts = view.acting_master and not stored.topic.startswith(SYNC_MEMBER_TOPIC)
    brokers = [_with_acting_master(one) if acts else one for one in stored.brokers]
    if view.zone is not None:
        brokers = [one for one in brokers if _in_zone(one.data, view.zone)]
    mappings = {one.queues.broker_name: one.mapping for one in stored.brokers if one.mapping}
    return TopicRouteData(
        broker_datas=tuple(one.data for one in brokers),
        queue_datas=tuple(one.queues for one in brokers),
        filter_server_table={address: servers for one in brokers for address, servers in one.filters.items()},
        order_topic_conf=stored.order_conf if view.order else None,
        topic_queue_mapping_by_broker=mappings or None,
    )


def addresses(flat: Iterable[str]) -> dict[int, str]:
    """`[id, address, …]` in the order of the ids."""
    it = iter(flat)
    return dict(sorted((int(number), address) for number, address in zip(it, it, strict=True)))


def _stored_broker(row: list[str]) -> StoredBroker:
    name, text, cluster, acting, zone, mapping, *members = row
    ids, found, filters = members[::3], members[1::3], members[2::3]
    by_id = addresses(part for pair in zip(ids, found, strict=True) for part in pair)
    servers = {
        address: tuple(msgspec.json.decode(listed, type=list[str]))
        for address, listed in zip(found, filters, strict=True)
        if listed
    }
    info = decode_mapping_info(mapping.encode()) if mapping else None
    data = BrokerData(cluster, name, by_id, acting == "1", zone or None)
    return StoredBroker(data, queue_data(name, text), servers, info)


def _with_acting_master(one: StoredBroker) -> StoredBroker:
    """The smallest id listed as id 0, while the group has no master and is not writable."""
    data = one.data
    if 0 in data.broker_addrs or not data.enable_acting_master or one.queues.perm & PERM_WRITE:
        return one
    smallest = min(data.broker_addrs)
    listed = {0 if number == smallest else number: address for number, address in data.broker_addrs.items()}
    return msgspec.structs.replace(
        one, data=msgspec.structs.replace(data, broker_addrs=dict(sorted(listed.items())))
    )


def _in_zone(data: BrokerData, zone: str) -> bool:
    """A broker without master is kept whatever its zone: its slaves are all that is left to read from."""
    return 0 not in data.broker_addrs or (data.zone_name or "").lower() == zone.lower()
