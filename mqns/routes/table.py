"""The route table of a client (MQClientInstance topicRouteTable and brokerAddrTable)."""

from collections.abc import Container, Mapping

from msgspec import Struct
from msgspec.structs import replace

from mqns.routes.publish import TopicPublishInfo, publish_info
from mqns.routes.queues import MessageQueue, Queues
from mqns.routes.static_topics import MOCK_PREFIX, NO_BROKER, serving_brokers
from mqns.routes.subscribe import subscribe_queues
from rocketmq_remoting.route import TopicRouteData


class CachedRoute(Struct, frozen=True):
    """A route, its lists sorted by broker name, and the queues to publish and subscribe.

    `serving` maps the queues of a static topic to brokers: (broker name in the queue, number) -> broker."""

    route: TopicRouteData
    publish: TopicPublishInfo
    subscribe: Queues
    serving: Mapping[tuple[str, int], str]


class TopicRouteTable:
    """Routes by topic, and addresses of their brokers; returned values do not change later."""

    def __init__(self) -> None:
        self._routes: dict[str, CachedRoute] = {}
        self._addresses: dict[str, dict[int, str]] = {}

    @property
    def addresses(self) -> Mapping[str, Mapping[int, str]]:
        """Broker name -> broker id -> `host:port`."""
        return dict(self._addresses)

    def cached_route(self, topic: str) -> CachedRoute | None:
        """Return the cached route of a topic, or None."""
        return self._routes.get(topic)

    def broker_of(self, queue: MessageQueue) -> str:
        """Return the name of the broker that serves a queue; for a static topic, the one that serves it now."""
        if not queue.broker_name.startswith(MOCK_PREFIX):
            return queue.broker_name
        cached_route = self._routes.get(queue.topic)
        serving = cached_route.serving if cached_route else {}
        return serving.get((queue.broker_name, queue.queue_id), NO_BROKER)

    def put(self, topic: str, route: TopicRouteData) -> bool:
        """Store a route and the addresses of its brokers; return whether it differs from the stored one."""
        route = sorted_route(route)
        cached_route = self._routes.get(topic)
        if cached_route is not None and cached_route.route == route:
            return False
        mappings = route.topic_queue_mapping_by_broker or {}
        self._routes[topic] = CachedRoute(
            route,
            publish_info(topic, route),
            subscribe_queues(topic, route),
            serving_brokers(mappings.values()),
        )
        for data in route.broker_datas:
            self._addresses[data.broker_name] = data.broker_addrs
        return True

    def retain(self, topics: Container[str]) -> None:
        """Remove the routes of other topics; drop_offline removes the addresses of their brokers."""
        self._routes = {
            topic: cached_route for topic, cached_route in self._routes.items() if topic in topics
        }

    def drop_offline(self) -> list[str]:
        """Remove and return the addresses that are in no stored route (MQClientInstance.cleanOfflineBroker)."""
        alive = {
            address
            for cached_route in self._routes.values()
            for data in cached_route.route.broker_datas
            for address in data.broker_addrs.values()
        }
        kept = {
            name: {number: address for number, address in table.items() if address in alive}
            for name, table in self._addresses.items()
        }
        dropped = [a for table in self._addresses.values() for a in table.values() if a not in alive]
        self._addresses = {name: table for name, table in kept.items() if table}
        return dropped


def sorted_route(route: TopicRouteData) -> TopicRouteData:
    """Return the route with its lists sorted by broker name, as routes are compared."""
    return replace(
        route,
        broker_datas=tuple(sorted(route.broker_datas, key=lambda data: data.broker_name)),
        queue_datas=tuple(sorted(route.queue_datas, key=lambda data: data.broker_name)),
    )
