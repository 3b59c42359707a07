"""Routes of topics (105): what the store has of one, and the answer that a client's request makes of it."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec

from registry.errors import TopicNotFound
from registry.keys import ORDER_TOPIC_CONFIG, Keys
from registry.plans import Plan, ScriptCall, pairs
from registry.queue_text import queue_data, wiped
from remoting.json_out import Dialect
from remoting.permission import PERM_WRITE
from remoting.route import BrokerData, QueueData, TopicRouteData, encode_route
from remoting.topic_queue_mapping import TopicQueueMappingInfo, decode_mapping_info

SYNC_MEMBER_TOPIC = "rmq_sys_SYNC_BROKER_MEMBER_"
_NO_EXTRA = ("",)


class StoredBroker(msgspec.Struct, frozen=True):
    """One broker name of a route, at least one of its members living. A drain has taken the write bit already."""

    data: BrokerData
    queues: QueueData
    filters: dict[str, tuple[str, ...]]
    mapping: TopicQueueMappingInfo | None


class StoredRoute(msgspec.Struct, frozen=True):
    """A topic as the store has it now. `names` are all broker names found, those left out too: whatever changes
    one of them may change the route. `listed` are the ids of each broker name that is not left out.

    All but the topic is shared by the routes that one call of the script read alike, such as those of a cluster that
    has every topic on every broker; `made` is what was made of one of them so far that holds for all."""

    topic: str
    brokers: tuple[StoredBroker, ...]
    names: frozenset[str]
    order_conf: str | None = None
    listed: dict[str, frozenset[int]] = {}
    made: dict[tuple[object, ...], Any] = {}


class RouteView(msgspec.Struct, frozen=True):
    """What a request and the settings make of a stored route.

    `zone` filters by zone name (None: no filter); `acting_master` is supportActingMaster, `order` orderMessageEnable.
    """

    zone: str | None = None
    acting_master: bool = False
    order: bool = False


def read_route(keys: Keys, topic: str) -> Plan[StoredRoute]:
    """All of a topic's route, read at one moment."""
    read = RoutesRead((yield routes_call(keys, (topic,))))
    return read.route(topic, 0)


def routes_call(keys: Keys, topics: tuple[str, ...]) -> ScriptCall:
    """What reads the routes of topics at one moment, of which a call takes only so many; see `RoutesRead`."""
    return ScriptCall("route", _shared_keys(keys), topics)


def route_of(stored: StoredRoute, view: RouteView) -> TopicRouteData:
    """The answer (RocketMQ RouteInfoManager.pickupTopicRouteData, ZoneRouteRPCHook). Raises TopicNotFound."""
    if not stored.brokers:
        raise TopicNotFound(stored.topic)
    acts = _acts(stored.topic, view)
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


def body_of(stored: StoredRoute, view: RouteView, dialect: Dialect, *, v5_members: bool = True) -> bytes:
    """The answer as it is sent, see `encode_route`; a topic's name is nowhere in it. Raises TopicNotFound."""
    kind = (_acts(stored.topic, view), view.zone, view.order, dialect is Dialect.STANDARD, v5_members)
    body: bytes | None = stored.made.get(kind)
    if body is None:
        body = encode_route(route_of(stored, view), dialect, v5_members=v5_members)
        stored.made[kind] = body
    return body


def addresses(flat: Iterable[str]) -> dict[int, str]:
    """`[id, address, …]` in the order of the ids."""
    it = iter(flat)
    return dict(sorted((int(number), address) for number, address in zip(it, it, strict=True)))


class _Living(msgspec.Struct, frozen=True):
    epoch: str
    data: BrokerData
    filters: dict[str, tuple[str, ...]]
    drained: bool


class RoutesRead:
    """What one call of the script read of the topics that it was given: of the first ones, as many as `len` says."""

    def __init__(self, reply: list[Any]) -> None:
        self._rows, extras, self._hashes, *self._topics = reply
        self._extras = {extra[0]: tuple(extra[1:]) for extra in extras}
        self._brokers: dict[str, _Living] | None = None
        self._alike: dict[tuple[int, tuple[str, ...]], StoredRoute] = {}

    def __len__(self) -> int:
        return len(self._topics)

    def route(self, topic: str, at: int) -> StoredRoute:
        """The route of topic number `at`."""
        source = (self._topics[at], self._extras.get(at, _NO_EXTRA))
        alike = self._alike.get(source)
        if alike is None:
            alike = self._alike[source] = self._made(topic, source[1], self._hashes[source[0] - 1])
        return StoredRoute(topic, alike.brokers, alike.names, alike.order_conf, alike.listed, alike.made)

    def _made(self, topic: str, extra: tuple[str, ...], rows: list[str]) -> StoredRoute:
        if self._brokers is None:
            self._brokers = {row[0]: _living(row) for row in self._rows}
        order_conf, infos = extra[0], pairs([*extra[1:]])
        brokers = []
        for name, text in pairs(rows).items():
            living = self._brokers.get(name)
            if living is None or not (queues := _under(living.epoch, text)):
                continue
            info = _under(living.epoch, infos.get(name, ""))
            mapping = decode_mapping_info(info.encode()) if info else None
            effective = queue_data(name, wiped(queues) if living.drained else queues)
            brokers.append(StoredBroker(living.data, effective, living.filters, mapping))
        listed = {one.data.broker_name: frozenset(one.data.broker_addrs) for one in brokers}
        return StoredRoute(topic, tuple(brokers), frozenset(rows[::2]), order_conf or None, listed)


@cache
def _shared_keys(keys: Keys) -> tuple[str, ...]:
    return keys.events_meta, keys.leases, keys.kv(ORDER_TOPIC_CONFIG)


def _acts(topic: str, view: RouteView) -> bool:
    """Whether groups without master may list an acting one."""
    return view.acting_master and not topic.startswith(SYNC_MEMBER_TOPIC)


def _under(epoch: str, text: str) -> str:
    """What a field says, if it counts under this epoch."""
    return text[len(epoch) + 1 :] if text.startswith(f"{epoch},") else ""


def _living(row: list[str]) -> _Living:
    name, epoch, cluster, acting, zone, drained, *members = row
    ids, found, filters = members[::3], members[1::3], members[2::3]
    by_id = addresses(part for pair in zip(ids, found, strict=True) for part in pair)
    servers = {
        address: tuple(msgspec.json.decode(listed, type=list[str]))
        for address, listed in zip(found, filters, strict=True)
        if listed
    }
    return _Living(
        epoch, BrokerData(cluster, name, by_id, acting == "1", zone or None), servers, drained == "1"
    )


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
