"""The discovery half of Java's MQClientInstance: routes, heartbeats, and who of us consumes and produces."""

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Self

from msgspec import Struct

from client.addresses.sources import configured_addresses
from client.errors import AnswerError, ClientError, ConnectionClosed
from client.heartbeats.heart import Heart, Leaving
from client.heartbeats.members import Consumer, Members
from client.heartbeats.subscriptions import Expression
from client.identity import DEFAULT_INSTANCE, client_id, local_ip
from client.routes.book import Known, RouteBook
from client.routes.names import MASTER_ID
from client.routes.polling import OnChange, RoutePolling
from client.routes.publish import DEFAULT_QUEUES, PublishInfo
from client.routes.queues import MessageQueue, Queues
from client.routes.subscribe import PullFrom, pull_from
from client.timing import at_fixed_rate
from client.wire.connection import Connection
from client.wire.connections import Connect, tcp_connect
from client.wire.options import RemotingOptions
from client.wire.remoting_client import AsyncRemotingClient
from remoting.codes import RequestCode, ResponseCode
from remoting.command import Command

log = logging.getLogger(__name__)

FetchNameServers = Callable[[], Awaitable[Sequence[str] | None]]
"""The addresses of the name servers now; None or an error leaves them as they are."""
FIRST_POLL_S: Final = 0.01
FIRST_HEARTBEAT_S: Final = 1.0
FIRST_FETCH_S: Final = 10.0
FETCH_EVERY_S: Final = 120.0


class MqClientOptions(Struct, frozen=True, kw_only=True):
    """Names follow Java's ClientConfig; durations are in seconds.

    `client_ip` and `instance_name` make the client id; without an IP it is the one this machine goes out with.
    `heartbeat_v2`: short heartbeats to brokers that know them (useHeartbeatV2)."""

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
    """Knows the routes of its topics and keeps brokers aware of its groups, as long as its context lasts.

    Name servers are those given (a `;`-separated text, or several); else those in NAMESRV_ADDR; else those that
    `fetch_name_servers` gives at the start and each two minutes, by default from RocketMQ's HTTP endpoint. To be used
    within one event loop."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        options: MqClientOptions | None = None,
        *,
        fetch_name_servers: FetchNameServers | None = None,
        connect: Connect = tcp_connect,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.options = options or MqClientOptions()
        own = self.options
        self.client_id = client_id(
            own.client_ip or local_ip(), own.instance_name, own.unit_name, stream=own.stream
        )
        given = name_servers if isinstance(name_servers, str) else ";".join(name_servers)
        configured = configured_addresses(given)
        self._fetch = None if configured else fetch_name_servers or _endpoint(own.unit_name)
        self._connect = connect
        self._now_ms = now_ms
        self.remoting = AsyncRemotingClient(
            own.remoting, name_servers=configured, connect=self._noticed_connect
        )
        self._members = Members()
        self._book = RouteBook()
        self._asked_for: set[str] = set()
        self._polling = RoutePolling(self.remoting, self._book, self._topics, timeout_s=own.call_timeout_s)
        self._heart = Heart(
            self.remoting,
            self._members,
            self._book,
            self.client_id,
            short_forms=own.heartbeat_v2,
            timeout_s=own.call_timeout_s,
        )
        self._timers: list[asyncio.Task[None]] = []
        self._closed = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Begin to poll routes and to send heartbeats."""
        if self._fetch is not None:
            await self._fetch_name_servers()
            self._start_timer(self._fetch_name_servers, FIRST_FETCH_S, FETCH_EVERY_S)
        self._start_timer(self._polling.poll, FIRST_POLL_S, self.options.poll_name_server_s)
        self._start_timer(self._periodic_beat, FIRST_HEARTBEAT_S, self.options.heartbeat_broker_s)

    async def close(self) -> None:
        """Unregister all groups, and end all connections and tasks."""
        if self._closed:
            return
        self._closed = True
        for timer in self._timers:
            timer.cancel()
        if self._timers:
            await asyncio.wait(self._timers)
        groups = [Leaving(consumer_group=group) for group in self._members.consumers]
        groups += [Leaving(producer_group=group) for group in self._members.producers]
        try:
            if groups:
                await self._heart.leave(groups)
        finally:
            await self.remoting.close()

    # groups

    async def add_producer(self, group: str, topics: Iterable[str] = ()) -> None:
        """Register a group of producers of these topics, and tell the brokers. ConfigError if it is there already."""
        self._members.add_producer(group, topics)
        await self._groups_changed()

    async def add_consumer(self, consumer: Consumer) -> None:
        """Register a group of consumers, and tell the brokers.

        ConfigError if it is there already, SubscriptionError for an expression that is none."""
        self._members.add_consumer(consumer, self._now_ms())
        await self._groups_changed()

    async def subscribe(self, group: str, topic: str, expression: Expression | str = "*") -> None:
        """Have a consumers' group want another topic, or something else of it. Errors as for add_consumer."""
        self._members.subscribe(group, topic, expression, self._now_ms())
        await self._groups_changed()

    async def unsubscribe(self, group: str, topic: str) -> None:
        """Have a consumers' group want nothing of a topic. ConfigError for an unknown group."""
        self._members.unsubscribe(group, topic)
        await self._groups_changed()

    async def remove_producer(self, group: str) -> None:
        """Unregister a group with every broker; nothing if it is not there."""
        if self._members.remove_producer(group):
            await self._left(Leaving(producer_group=group))

    async def remove_consumer(self, group: str) -> None:
        """Unregister a group with every broker; nothing if it is not there."""
        if self._members.remove_consumer(group):
            await self._left(Leaving(consumer_group=group))

    def on_consumers_changed(self, callback: Callable[[str], None]) -> None:
        """Have `callback` called with a group's name when a broker says that its members have changed (40)."""

        def pushed(_: str, command: Command) -> None:
            group = command.get("consumerGroup")
            if group is not None:
                callback(group)

        self.remoting.on_push(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, pushed)

    # routes

    async def watch(self, topic: str, on_change: OnChange) -> Callable[[], None]:
        """Have a topic polled, from now on, and `on_change` called with its first route and with each that is
        different.

        Gives a function that ends it."""
        end = self._polling.watch(topic, on_change)
        await self._polling.refresh([topic])
        return end

    def known(self, topic: str) -> Known | None:
        """What polling has brought of a topic so far; asks nobody."""
        return self._book.known(topic)

    async def publish_info(self, topic: str) -> PublishInfo:
        """Where to send messages of a topic, asked for if it is not known; the topic is polled from then on.

        A topic that is not there gets the queues it will have once a first message has made it. AnswerError with
        TOPIC_NOT_EXIST where brokers make no topics, RemotingError without an answer."""
        known = self._book.known(topic)
        if known is None:
            if not await self._polling.fetch(topic):
                await self._polling.fetch_default(topic, self.options.default_topic_queue_nums)
        elif not known.publish.queues:
            await self._polling.fetch(topic)
        return self._used(topic).publish

    async def subscribe_queues(self, topic: str) -> Queues:
        """Where to receive messages of a topic from, asked for likewise; errors as for publish_info."""
        if self._book.known(topic) is None:
            await self._polling.fetch(topic)
        return self._used(topic).subscribe

    def master_address(self, broker_name: str) -> str | None:
        """Where to send messages to the queues of a broker name."""
        return self._book.addresses.get(broker_name, {}).get(MASTER_ID)

    def pull_from(
        self, broker_name: str, wanted_id: int = MASTER_ID, *, only_this: bool = False
    ) -> PullFrom | None:
        """Which broker of a name to pull from: the wanted one or another that can do it."""
        return pull_from(self._book.addresses.get(broker_name, {}), wanted_id, only_this=only_this)

    def broker_of(self, queue: MessageQueue) -> str:
        """The broker name that serves a queue, which for a static topic is not the queue's own."""
        return self._book.broker_of(queue)

    def broker_version(self, address: str) -> int | None:
        """What a broker said in its last answer to a heartbeat (remoting.version)."""
        return self._heart.versions.get(address)

    # what goes on by itself

    def _used(self, topic: str) -> Known:
        """What is known of a topic, which is polled from now on."""
        known = self._book.known(topic)
        if known is None:
            server = self.remoting.chosen_name_server or ""
            raise AnswerError(server, ResponseCode.TOPIC_NOT_EXIST, f"no topic {topic!r}")
        self._asked_for.add(topic)
        return known

    def _topics(self) -> set[str]:
        return self._members.topics() | self._asked_for

    async def _periodic_beat(self) -> None:
        for address in self._book.drop_offline():
            log.info("the broker at %s is in no route any more", address)
        self._heart.forget_gone()
        await self._heart.beat()

    def _start_timer(self, job: Callable[[], Awaitable[None]], first_s: float, every_s: float) -> None:
        self._timers.append(asyncio.create_task(at_fixed_rate(job, first_s, every_s)))

    async def _fetch_name_servers(self) -> None:
        try:
            addresses = await self._fetch() if self._fetch else None
            if addresses:
                self.remoting.set_name_servers(addresses)
        except ClientError as error:
            log.warning("the name servers stay as they are: %s", error)

    async def _groups_changed(self) -> None:
        if self._closed:
            raise ConnectionClosed("", "this client is closed")
        await self._polling.refresh(
            topic for topic in self._members.topics() if self._book.known(topic) is None
        )
        await self._heart.beat_anew()

    async def _left(self, group: Leaving) -> None:
        await self._heart.leave([group])
        self._book.forget_all_but(self._topics() | self._polling.watched)

    async def _noticed_connect(
        self, host: str, port: int, protocol_factory: Callable[[], Connection], tls: ssl.SSLContext | None
    ) -> tuple[Any, Connection]:
        made = await self._connect(host, port, protocol_factory, tls)
        self._heart.connected(host, port)
        return made


def _endpoint(unit_name: str) -> FetchNameServers:
    """RocketMQ's HTTP endpoint, which alone needs httpx."""
    from client.addresses.endpoint import AddressEndpoint, endpoint_url

    return AddressEndpoint(endpoint_url(unit=unit_name or None)).fetch
