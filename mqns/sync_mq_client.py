"""The sync client with routes, heartbeats and groups."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mqns.heartbeats.groups import ConsumerGroup
from mqns.heartbeats.subscriptions import Expression
from mqns.mq_client import AsyncMqClient, FetchNameServers, MqClientOptions
from mqns.names import MASTER_ID
from mqns.routes.poller import OnChange
from mqns.routes.publish import TopicPublishInfo
from mqns.routes.queues import MessageQueue, Queues
from mqns.routes.subscribe import FindBrokerResult
from mqns.routes.table import CachedRoute
from mqns.sync import SyncClient

if TYPE_CHECKING:
    from mqns.changes.stream import ChangeStream


class MqClient(SyncClient[AsyncMqClient]):
    """An AsyncMqClient in a thread of its own, started by the constructor; callbacks run in that thread.

    May be used from several threads, but not from its callbacks."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        options: MqClientOptions | None = None,
        *,
        fetch_name_servers: FetchNameServers | None = None,
        changes: "ChangeStream | None" = None,
    ) -> None:
        super().__init__(
            AsyncMqClient(name_servers, options, fetch_name_servers=fetch_name_servers, changes=changes)
        )
        try:
            self._loop.run(self._async_client.start())
        except BaseException:
            self._loop.close()
            raise

    @property
    def client_id(self) -> str:
        """The id by which brokers identify the client."""
        return self._async_client.client_id

    def add_producer(self, group: str, topics: Iterable[str] = ()) -> None:
        """See AsyncMqClient.add_producer."""
        self._loop.run(self._async_client.add_producer(group, topics))

    def add_consumer(self, consumer: ConsumerGroup) -> None:
        """See AsyncMqClient.add_consumer."""
        self._loop.run(self._async_client.add_consumer(consumer))

    def subscribe(self, group: str, topic: str, expression: Expression | str = "*") -> None:
        """See AsyncMqClient.subscribe."""
        self._loop.run(self._async_client.subscribe(group, topic, expression))

    def unsubscribe(self, group: str, topic: str) -> None:
        """See AsyncMqClient.unsubscribe."""
        self._loop.run(self._async_client.unsubscribe(group, topic))

    def remove_producer(self, group: str) -> None:
        """See AsyncMqClient.remove_producer."""
        self._loop.run(self._async_client.remove_producer(group))

    def remove_consumer(self, group: str) -> None:
        """See AsyncMqClient.remove_consumer."""
        self._loop.run(self._async_client.remove_consumer(group))

    def on_consumers_changed(self, callback: Callable[[str], None]) -> None:
        """See AsyncMqClient.on_consumers_changed."""
        self._call_in_loop(self._async_client.on_consumers_changed, callback)

    def watch(self, topic: str, on_change: OnChange) -> Callable[[], None]:
        """See AsyncMqClient.watch."""
        end = self._loop.run(self._async_client.watch(topic, on_change))
        return lambda: self._call_in_loop(end)

    def cached_route(self, topic: str) -> CachedRoute | None:
        """See AsyncMqClient.known."""
        return self._call_in_loop(self._async_client.cached_route, topic)

    def publish_info(self, topic: str) -> TopicPublishInfo:
        """See AsyncMqClient.publish_info."""
        return self._loop.run(self._async_client.publish_info(topic))

    def subscribe_queues(self, topic: str) -> Queues:
        """See AsyncMqClient.subscribe_queues."""
        return self._loop.run(self._async_client.subscribe_queues(topic))

    def master_address(self, broker_name: str) -> str | None:
        """See AsyncMqClient.master_address."""
        return self._call_in_loop(self._async_client.master_address, broker_name)

    def find_broker(
        self, broker_name: str, wanted_id: int = MASTER_ID, *, only_this: bool = False
    ) -> FindBrokerResult | None:
        """See AsyncMqClient.pull_from."""
        return self._call_in_loop(self._async_client.find_broker, broker_name, wanted_id, only_this=only_this)

    def broker_of(self, queue: MessageQueue) -> str:
        """See AsyncMqClient.broker_of."""
        return self._call_in_loop(self._async_client.broker_of, queue)

    def broker_version(self, address: str) -> int | None:
        """See AsyncMqClient.broker_version."""
        return self._call_in_loop(self._async_client.broker_version, address)
