"""What a client knows: routes by topic, and the addresses of the brokers in them."""

from collections.abc import Container, Mapping

from msgspec import Struct
from msgspec.structs import replace

from client.routes.publish import PublishInfo, publish_info
from client.routes.queues import MessageQueue, Queues
from client.routes.static_topics import MOCK_PREFIX, NO_BROKER, serving_brokers
from client.routes.subscribe import subscribe_queues
from remoting.route import TopicRouteData


class Known(Struct, frozen=True):
    """A route, its lists sorted by broker name, and what follows from it.

    `serving` tells for a static topic which broker has a queue: (broker name in the queue, number) -> broker."""

    route: TopicRouteData
    publish: PublishInfo
    subscribe: Queues
    serving: Mapping[tuple[str, int], str]


class RouteBook:
    """Routes and addresses; whatever it hands out stays as it is."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._addresses: dict[str, dict[int, str]] = {}

    @property
    def addresses(self) -> Mapping[str, Mapping[int, str]]:
        """Broker name -> broker id -> `host:port`."""
        return dict(self._addresses)

    def known(self, topic: str) -> Known | None:
        """None as long as there is no route."""
        return self._known.get(topic)

    def broker_of(self, queue: MessageQueue) -> str:
        """The name of the broker that serves a queue: its own, or for a static topic the one that has it now."""
        if not queue.broker_name.startswith(MOCK_PREFIX):
            return queue.broker_name
        known = self._known.get(queue.topic)
        serving = known.serving if known else {}
        return serving.get((queue.broker_name, queue.queue_id), NO_BROKER)

    def put(self, topic: str, route: TopicRouteData) -> bool:
        """Store a route; whether it is another than before. If so, its brokers' addresses are known from now on."""
        route = in_order(route)
        known = self._known.get(topic)
        if known is not None and known.route == route:
            return False
        mappings = route.topic_queue_mapping_by_broker or {}
        self._known[topic] = Known(
            route,
            publish_info(topic, route),
            subscribe_queues(topic, route),
            serving_brokers(mappings.values()),
        )
        for data in route.broker_datas:
            self._addresses[data.broker_name] = data.broker_addrs
        return True

    def forget_all_but(self, topics: Container[str]) -> None:
        """Know the other topics no more; their brokers' addresses go with drop_offline."""
        self._known = {topic: known for topic, known in self._known.items() if topic in topics}

    def drop_offline(self) -> list[str]:
        """Drop each address that is in no stored route, and each name that has none; the addresses dropped.

        RocketMQ's MQClientInstance.cleanOfflineBroker."""
        alive = {
            address
            for known in self._known.values()
            for data in known.route.broker_datas
            for address in data.broker_addrs.values()
        }
        kept = {
            name: {number: address for number, address in table.items() if address in alive}
            for name, table in self._addresses.items()
        }
        dropped = [a for table in self._addresses.values() for a in table.values() if a not in alive]
        self._addresses = {name: table for name, table in kept.items() if table}
        return dropped


def in_order(route: TopicRouteData) -> TopicRouteData:
    """The same route with its lists sorted, as routes are compared."""
    return replace(
        route,
        broker_datas=tuple(sorted(route.broker_datas, key=lambda data: data.broker_name)),
        queue_datas=tuple(sorted(route.queue_datas, key=lambda data: data.broker_name)),
    )
