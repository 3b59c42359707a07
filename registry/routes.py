"""Routes of topics (105): as stored, and as a client's request and the options show them."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from sys import intern
from typing import Any

import msgspec

from registry.errors import TopicNotFound
from registry.keys import ORDER_TOPIC_CONFIG, Keys
from registry.long_work.scan import scan, some_of
from registry.options.catalogue import Options
from registry.plans import Plan, ScriptCall, call, pairs
from registry.queue_data.queue_text import filter_servers, queue_data, wiped
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.permission import PERM_WRITE
from rocketmq_remoting.route import BrokerData, QueueData, TopicRouteData
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo, decode_mapping_info

SYNC_MEMBER_TOPIC = "rmq_sys_SYNC_BROKER_MEMBER_"
BROKERS_MAX = 500  # names of one call, which reads them all if they have few members
MAPPINGS_MAX = 64  # of one command
_NO_EXTRA = ("",)
_BROKERS_LEFT, _MAPPINGS_LEFT, _ROWS_LEFT = -1, -2, -3


class StoredBroker(msgspec.Struct, frozen=True):
    """One broker name of a route, at least one of its members living. A drain has taken the write bit already."""

    data: BrokerData
    queues: QueueData
    filters: dict[str, tuple[str, ...]]
    mapping: TopicQueueMappingInfo | None


class StoredRoute(msgspec.Struct, frozen=True):
    """A topic as stored. `names` are all broker names in it, those left out too: a change of one of them may change
    the route. `listed` are the ids of each broker name that is not left out.

    All but the topic is shared by equal routes of one read, such as those of a cluster that has every topic on every
    broker; `replies` are those encoded so far, which are theirs too."""

    topic: str
    brokers: tuple[StoredBroker, ...]
    names: frozenset[str]
    order_conf: str | None = None
    listed: dict[str, frozenset[int]] = {}
    replies: dict[tuple[object, ...], Any] = {}


class RouteView(msgspec.Struct, frozen=True):
    """What a request and the settings make of a stored route.

    `zone` filters by zone name (None: no filter); with `acting_master` a group without master may list an acting one;
    `order` is orderMessageEnable."""

    zone: str | None = None
    acting_master: bool = False
    order: bool = False

    @classmethod
    def of(cls, options: Options, topic: str, zone: str | None) -> "RouteView":
        """Return what these options make of a topic's route."""
        acting_master = options.support_acting_master and not topic.startswith(SYNC_MEMBER_TOPIC)
        return cls(zone, acting_master, options.order_message_enable or options.cluster_test)


def must_wait(options: Options, service_age_s: Callable[[], float | None]) -> bool:
    """Return whether no route is answered yet (needWaitForService); the age is None while no worker has run."""
    if not options.need_wait_for_service:
        return False
    age_s = service_age_s()
    return age_s is None or age_s < options.wait_seconds_for_service


def read_route(keys: Keys, topic: str) -> Plan[StoredRoute]:
    """Return a topic's route, read at one moment, unless it is more than one script may read."""
    return (yield from read_long(keys, topic)).route(topic, 0)


def read_long(keys: Keys, topic: str) -> Plan["RoutesRead"]:
    """Read a topic's route, however long it is."""
    read = RoutesRead((yield routes_call(keys, (topic,))))
    yield from _read_rest(keys, topic, read)
    return read


def routes_call(keys: Keys, topics: tuple[str, ...]) -> ScriptCall:
    """Return the call that reads the routes of topics at one moment, as many as it may; see `RoutesRead`."""
    return ScriptCall("read_routes", _shared_keys(keys), topics)


def _read_rest(keys: Keys, topic: str, read: "RoutesRead") -> Plan[None]:
    """Read what the script had no time for, in several commands; `topic` is the first that it was asked for."""
    if read.rows_left:
        read.add_rows((yield from scan(keys.route(topic))))
    while left := read.brokers_left:
        names = some_of(left, 0, BROKERS_MAX)
        rows, unread = yield ScriptCall("read_brokers", (keys.events_meta,), tuple(names))
        read.add_brokers(rows, [*unread, *left[len(names) :]])
    while left := read.mappings_left:
        names = some_of(left, 0, MAPPINGS_MAX)
        read.add_mappings(names, (yield call("HMGET", keys.mapping(topic), *names)))


def route_of(stored: StoredRoute, view: RouteView) -> TopicRouteData:
    """Return the route to show (RouteInfoManager.pickupTopicRouteData, ZoneRouteRPCHook). Raises TopicNotFound."""
    if not stored.brokers:
        raise TopicNotFound(stored.topic)
    brokers: Sequence[StoredBroker] = stored.brokers
    if view.acting_master:
        brokers = [_with_acting_master(broker) for broker in brokers]
    if view.zone is not None:
        brokers = [broker for broker in brokers if _in_zone(broker.data, view.zone)]
    mappings = {broker.queues.broker_name: broker.mapping for broker in stored.brokers if broker.mapping}
    return TopicRouteData(
        broker_datas=tuple(broker.data for broker in brokers),
        queue_datas=tuple(broker.queues for broker in brokers),
        filter_server_table={
            address: servers for broker in brokers for address, servers in broker.filters.items()
        },
        order_topic_conf=stored.order_conf if view.order else None,
        topic_queue_mapping_by_broker=mappings or None,
    )


def addresses(flat: Iterable[str]) -> dict[int, str]:
    """Return the table of `[id, address, …]`, in the order of the ids."""
    it = iter(flat)
    return dict(sorted((int(number), address) for number, address in zip(it, it, strict=True)))


class _Living(msgspec.Struct, frozen=True):
    epoch: str
    data: BrokerData
    filters: dict[str, tuple[str, ...]]
    drained: bool


class RoutesRead:
    """The reply of lua/read_routes.lua: routes of the first `len` topics that were asked for.

    What is left is read and added before there is a route (`read_long`); few are so long."""

    def __init__(self, reply: list[Any]) -> None:
        self._rows, extras, self._hashes, *self._topics = reply
        self._extras = {at: tuple(extra) for at, *extra in extras}
        self.brokers_left: Sequence[str] = self._extras.pop(_BROKERS_LEFT, ())
        self._unmapped = self._extras.pop(_MAPPINGS_LEFT, None) is not None
        self.mappings_left: Sequence[str] = self._hashes[0][::2] if self._unmapped else ()
        self.rows_left = self._extras.pop(_ROWS_LEFT, None) is not None
        self._brokers: dict[str, _Living] | None = None
        self._alike: dict[tuple[int, tuple[str, ...]], StoredRoute] = {}

    def __len__(self) -> int:
        return len(self._topics)

    @property
    def whole(self) -> bool:
        """Return whether nothing is left to be read."""
        return not (self.rows_left or self.brokers_left or self.mappings_left)

    def add_rows(self, rows: dict[str, str]) -> None:
        """Add the rows of the only route, whose brokers then are left, and their mapping info."""
        self._hashes[0] = [part for row in rows.items() for part in row]
        self.brokers_left = names = [*rows]
        self.mappings_left = names if self._unmapped else ()
        self.rows_left = False

    def add_brokers(self, rows: list[Any], left: Sequence[str]) -> None:
        """Add what lua/read_brokers.lua replied; `left` are still to be read."""
        self._rows += rows
        self.brokers_left = left

    def add_mappings(self, names: Sequence[str], texts: list[str | None]) -> None:
        """Add the mapping info of the next brokers."""
        stored = [part for name, text in zip(names, texts, strict=True) if text for part in (name, text)]
        self._extras[0] = (*self._extras.get(0, _NO_EXTRA), *stored)
        self.mappings_left = self.mappings_left[len(names) :]

    def route(self, topic: str, at: int) -> StoredRoute:
        """Return the route of topic number `at`."""
        source = number, extra = self._topics[at], self._extras.get(at, _NO_EXTRA)
        alike = self._alike.get(source)
        if alike is None:
            alike = self._alike[source] = self._read(topic, extra, self._hashes[number - 1])
        return StoredRoute(topic, alike.brokers, alike.names, alike.order_conf, alike.listed, alike.replies)

    def _read(self, topic: str, extra: tuple[str, ...], rows: list[str]) -> StoredRoute:
        if self._brokers is None:
            self._brokers = {living.data.broker_name: living for living in map(_living, self._rows)}
        order_conf, *mappings = extra
        infos = pairs(mappings)
        brokers = []
        for name, text in pairs(rows).items():
            living = self._brokers.get(name)
            if living is None or not (queues := _under(living.epoch, text)):
                continue
            try:
                effective = queue_data(name, wiped(queues) if living.drained else queues)
            except ValueError:  # damage, which the repair drops
                continue
            mapping = _mapping(_under(living.epoch, infos.get(name, "")))
            brokers.append(StoredBroker(living.data, effective, living.filters, mapping))
        listed = {intern(broker.data.broker_name): _ids(*broker.data.broker_addrs) for broker in brokers}
        names = frozenset(map(intern, rows[::2]))
        return StoredRoute(topic, tuple(brokers), names, order_conf or None, listed)


@cache
def _shared_keys(keys: Keys) -> tuple[str, ...]:
    return keys.events_meta, keys.kv(ORDER_TOPIC_CONFIG)


@lru_cache(1000)
def _ids(*ids: int) -> frozenset[int]:
    """Return the set of some ids: one for all brokers that have these, of all routes that are cached."""
    return frozenset(ids)


def _under(epoch: str, text: str) -> str:
    """Return a field without its epoch, "" under another one."""
    return text[len(epoch) + 1 :] if text.startswith(f"{epoch},") else ""


def _living(row: list[str]) -> _Living:
    name, epoch, cluster, acting, zone, drained, *members = row
    ids, listed, filters = members[::3], members[1::3], members[2::3]
    by_id = addresses(text for pair in zip(ids, listed, strict=True) for text in pair)
    servers = {address: filter_servers(text) for address, text in zip(listed, filters, strict=True) if text}
    return _Living(
        epoch, BrokerData(cluster, name, by_id, acting == "1", zone or None), servers, drained == "1"
    )


def _mapping(text: str) -> TopicQueueMappingInfo | None:
    """Return the mapping info that is stored; None without, and for damage: the others' rows are shown all the same."""
    try:
        return decode_mapping_info(text.encode()) if text else None
    except (BodyError, UnicodeEncodeError):
        return None


def _with_acting_master(broker: StoredBroker) -> StoredBroker:
    """Return the broker with the smallest id listed as id 0, while the group has no master and is not writable."""
    data = broker.data
    if 0 in data.broker_addrs or not data.enable_acting_master or broker.queues.perm & PERM_WRITE:
        return broker
    smallest = min(data.broker_addrs)
    listed = {0 if number == smallest else number: address for number, address in data.broker_addrs.items()}
    return msgspec.structs.replace(
        broker, data=msgspec.structs.replace(data, broker_addrs=dict(sorted(listed.items())))
    )


def _in_zone(data: BrokerData, zone: str) -> bool:
    """Return whether to show a broker; one without master is shown in any zone, since only its slaves are left."""
    return 0 not in data.broker_addrs or (data.zone_name or "").lower() == zone.lower()
