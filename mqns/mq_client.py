"""The async client with routes, heartbeats and groups (RocketMQ MQClientInstance without messages)."""

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec import Struct

from mqns.addresses.sources import configured_addresses
from mqns.client_id import DEFAULT_INSTANCE, client_id, local_ip
from mqns.errors import ClientError, ConnectionClosed, ResponseError
from mqns.heartbeats.groups import ClientGroups, ConsumerGroup
from mqns.heartbeats.sender import GroupUnregistration, HeartbeatSender
from mqns.heartbeats.subscriptions import Expression
from mqns.names import MASTER_ID
from mqns.remoting.connection import ClientConnection
from mqns.remoting.connection_table import Connect, tcp_connect
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.routes.following import RouteFollower
from mqns.routes.poller import OnChange, RoutePoller
from mqns.routes.publish import DEFAULT_QUEUES, TopicPublishInfo
from mqns.routes.queues import MessageQueue, Queues
from mqns.routes.subscribe import FindBrokerResult, find_broker
from mqns.routes.table import CachedRoute, TopicRouteTable
from mqns.tasks import at_fixed_rate
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command

if TYPE_CHECKING:
    from mqns.changes.stream import ChangeStream

log = logging.getLogger(__name__)

FetchNameServers = Callable[[], Awaitable[Sequence[str] | None]]
"""Returns the current addresses of the name servers; None or a ClientError leaves the list unchanged."""
FIRST_POLL_S: Final = 0.01
FIRST_HEARTBEAT_S: Final = 1.0
FIRST_FETCH_S: Final = 10.0
FETCH_EVERY_S: Final = 120.0


class MqClientOptions(Struct, frozen=True, kw_only=True):
    """Options of a client, named as in Java's ClientConfig; durations are in seconds.

    `client_ip` and `instance_name` make the client id; the default IP is that from which this machine sends.
    `heartbeat_v2`: short heartbeats to brokers that support them (useHeartbeatV2)."""

    client_ip: str | None = None
    instance_name: str = DEFAULT_INSTANCE
    unit_name: str = ""
    stream: bool = False
    poll_name_server_s: float = 30.0
    heartbeat_broker_s: float = 30.0
    call_timeout_s: float = 3.0
    default_topic_queue_nums: int = DEFAULT_QUEUES
    heartbeat_v2: bool = False
    remoting: RemotingOptions = RemotingOptions()


class AsyncMqClient:
    """Keeps the routes of its topics and sends heartbeats with its groups while its `async with` block runs.

    Name servers are those given (a `;`-separated text, or several); else those in NAMESRV_ADDR; else those that
    `fetch_name_servers` returns at the start and every 120 s, by default from RocketMQ's HTTP endpoint. With the
    `changes` of a redis-namesrv, routes are also refreshed as soon as they have changed. To be used within one event
    loop."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        options: MqClientOptions | None = None,
        *,
        fetch_name_servers: FetchNameServers | None = None,
        changes: "ChangeStream | None" = None,
        connect: Connect = tcp_connect,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.options = options or MqClientOptions()
        options = self.options
        self.client_id = client_id(
            options.client_ip or local_ip(), options.instance_name, options.unit_name, stream=options.stream
        )
        given = name_servers if isinstance(name_servers, str) else ";".join(name_servers)
        configured = configured_addresses(given)
        self._fetch = None if configured else fetch_name_servers or _endpoint(options.unit_name)
        self._connect = connect
        self._now_ms = now_ms
        self.remoting = AsyncRemotingClient(
            options.remoting, name_servers=configured, connect=self._connect_broker
        )
        self._groups = ClientGroups()
        self._routes = TopicRouteTable()
        self._used_topics: set[str] = set()
        self._polling = RoutePoller(
            self.remoting, self._routes, self._topics, timeout_s=options.call_timeout_s
        )
        self._changes = changes
        self._heartbeats = HeartbeatSender(
            self.remoting,
            self._groups,
            self._routes,
            self.client_id,
            short_heartbeats=options.heartbeat_v2,
            timeout_s=options.call_timeout_s,
        )
        self._timers: list[asyncio.Task[None]] = []
        self._closed = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Start polling routes and sending heartbeats."""
        if self._fetch is not None:
            await self._refresh_name_servers()
            self._start_timer(self._refresh_name_servers, FIRST_FETCH_S, FETCH_EVERY_S)
        self._start_timer(self._polling.poll, FIRST_POLL_S, self.options.poll_name_server_s)
        self._start_timer(self._send_heartbeat, FIRST_HEARTBEAT_S, self.options.heartbeat_broker_s)
        if self._changes is not None:
            follower = RouteFollower(self._polling, self._routes, self._polling.polled)
            self._timers.append(asyncio.create_task(follower.follow(self._changes)))

    async def close(self) -> None:
        """Unregister all groups, and end all connections and tasks; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        for timer in self._timers:
            timer.cancel()
        if self._timers:
            await asyncio.wait(self._timers)
        groups = [GroupUnregistration(consumer_group=group) for group in self._groups.consumers]
        groups += [GroupUnregistration(producer_group=group) for group in self._groups.producers]
        try:
            if groups:
                await self._heartbeats.unregister(groups)
        finally:
            await self.remoting.close()

    # groups

    async def add_producer(self, group: str, topics: Iterable[str] = ()) -> None:
        """Add a producer group with its topics and send a heartbeat. ConfigError if it exists."""
        self._groups.add_producer(group, topics)
        await self._groups_changed()

    async def add_consumer(self, consumer: ConsumerGroup) -> None:
        """Add a consumer group and send a heartbeat.

        ConfigError if it exists, SubscriptionError for an invalid expression."""
        self._groups.add_consumer(consumer, self._now_ms())
        await self._groups_changed()

    async def subscribe(self, group: str, topic: str, expression: Expression | str = "*") -> None:
        """Add or replace a subscription of a consumer group and send a heartbeat. Errors as for add_consumer."""
        self._groups.subscribe(group, topic, expression, self._now_ms())
        await self._groups_changed()

    async def unsubscribe(self, group: str, topic: str) -> None:
        """Remove a subscription of a consumer group and send a heartbeat. ConfigError for an unknown group."""
        self._groups.unsubscribe(group, topic)
        await self._groups_changed()

    async def remove_producer(self, group: str) -> None:
        """Unregister a group at every broker; an unknown group is ignored."""
        if self._groups.remove_producer(group):
            await self._unregister(GroupUnregistration(producer_group=group))

    async def remove_consumer(self, group: str) -> None:
        """Unregister a group at every broker; an unknown group is ignored."""
        if self._groups.remove_consumer(group):
            await self._unregister(GroupUnregistration(consumer_group=group))

    def on_consumers_changed(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with a group's name when a broker reports that its members changed (40)."""

        def pushed(_: str, command: Command) -> None:
            group = command.get("consumerGroup")
            if group is not None:
                callback(group)

        self.remoting.on_push(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, pushed)

    # routes

    async def watch(self, topic: str, on_change: OnChange) -> Callable[[], None]:
        """Poll a topic and call `on_change` with its current and each changed route; return a function that ends it."""
        end = self._polling.watch(topic, on_change)
        await self._polling.refresh([topic])
        return end

    def cached_route(self, topic: str) -> CachedRoute | None:
        """Return the cached route of a topic, without a request, or None."""
        return self._routes.cached_route(topic)

    async def publish_info(self, topic: str) -> TopicPublishInfo:
        """Return the queues to send to, after a lookup if no route is cached; the topic is polled from then on.

        A topic that does not exist gets the queues that brokers will create for it. ResponseError with
        TOPIC_NOT_EXIST if brokers create no topics, RemotingError without a response."""
        cached_route = self._routes.cached_route(topic)
        if cached_route is None:
            if not await self._polling.fetch(topic):
                await self._polling.fetch_default(topic, self.options.default_topic_queue_nums)
        elif not cached_route.publish.queues:
            await self._polling.fetch(topic)
        return self._used(topic).publish

    async def subscribe_queues(self, topic: str) -> Queues:
        """Return the queues to receive from, after a lookup if no route is cached; errors as for publish_info."""
        if self._routes.cached_route(topic) is None:
            await self._polling.fetch(topic)
        return self._used(topic).subscribe

    def master_address(self, broker_name: str) -> str | None:
        """Return the address of the master of a broker name, or None."""
        return self._routes.addresses.get(broker_name, {}).get(MASTER_ID)

    def find_broker(
        self, broker_name: str, wanted_id: int = MASTER_ID, *, only_this: bool = False
    ) -> FindBrokerResult | None:
        """Return the broker of a name to pull from: the wanted one or a substitute; None without any."""
        return find_broker(self._routes.addresses.get(broker_name, {}), wanted_id, only_this=only_this)

    def broker_of(self, queue: MessageQueue) -> str:
        """Return the broker name that serves a queue; for a static topic it is not the queue's own."""
        return self._routes.broker_of(queue)

    def broker_version(self, address: str) -> int | None:
        """Return the version in a broker's last response to a heartbeat (rocketmq_remoting.version), or None."""
        return self._heartbeats.versions.get(address)

    # periodic jobs

    def _used(self, topic: str) -> CachedRoute:
        """Return the cached route of a topic, and poll the topic from now on."""
        cached_route = self._routes.cached_route(topic)
        if cached_route is None:
            server = self.remoting.chosen_name_server or ""
            raise ResponseError(server, ResponseCode.TOPIC_NOT_EXIST, f"no topic {topic!r}")
        self._used_topics.add(topic)
        return cached_route

    def _topics(self) -> set[str]:
        return self._groups.topics() | self._used_topics

    async def _send_heartbeat(self) -> None:
        for address in self._routes.drop_offline():
            log.info("broker %s removed: no route has its address", address)
        self._heartbeats.remove_unknown_brokers()
        await self._heartbeats.send()

    def _start_timer(self, job: Callable[[], Awaitable[None]], first_s: float, every_s: float) -> None:
        self._timers.append(asyncio.create_task(at_fixed_rate(job, first_s, every_s)))

    async def _refresh_name_servers(self) -> None:
        try:
            addresses = await self._fetch() if self._fetch else None
            if addresses:
                self.remoting.set_name_servers(addresses)
        except ClientError as error:
            log.warning("the name servers are not refreshed: %s; the old list stays", error)

    async def _groups_changed(self) -> None:
        if self._closed:
            raise ConnectionClosed("", "this client is closed")
        await self._polling.refresh(
            topic for topic in self._groups.topics() if self._routes.cached_route(topic) is None
        )
        await self._heartbeats.send_now()

    async def _unregister(self, group: GroupUnregistration) -> None:
        await self._heartbeats.unregister([group])
        self._routes.retain(self._topics() | self._polling.watched)

    async def _connect_broker(
        self,
        host: str,
        port: int,
        protocol_factory: Callable[[], ClientConnection],
        tls: ssl.SSLContext | None,
    ) -> tuple[Any, ClientConnection]:
        connected = await self._connect(host, port, protocol_factory, tls)
        self._heartbeats.connected(host, port)
        return connected


def _endpoint(unit_name: str) -> FetchNameServers:
    """Return the fetch function of RocketMQ's HTTP endpoint; only this needs httpx."""
    from mqns.addresses.endpoint import AddressEndpoint, endpoint_url

    return AddressEndpoint(endpoint_url(unit=unit_name or None)).fetch
