"""AsyncMqClient for code without an event loop."""

from collections.abc import Callable, Iterable, Sequence

from client.blocking import Blocking
from client.heartbeats.members import Consumer
from client.heartbeats.subscriptions import Expression
from client.mq_client import AsyncMqClient, FetchNameServers, MqClientOptions
from client.routes.book import Known
from client.routes.names import MASTER_ID
from client.routes.polling import OnChange
from client.routes.publish import PublishInfo
from client.routes.queues import MessageQueue, Queues
from client.routes.subscribe import PullFrom


class MqClient(Blocking[AsyncMqClient]):
    """The same, blocking; may be used from several threads, but not from its own callbacks.

    It works from its making on, in a thread of its own in which callbacks are called too."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        options: MqClientOptions | None = None,
        *,
        fetch_name_servers: FetchNameServers | None = None,
    ) -> None:
        super().__init__(AsyncMqClient(name_servers, options, fetch_name_servers=fetch_name_servers))
        try:
            self._loop.run(self._face.start())
        except BaseException:
            self._loop.close()
            raise

    @property
    def client_id(self) -> str:
        """What brokers know it by."""
        return self._face.client_id

    def add_producer(self, group: str, topics: Iterable[str] = ()) -> None:
        """As AsyncMqClient.add_producer."""
        self._loop.run(self._face.add_producer(group, topics))

    def add_consumer(self, consumer: Consumer) -> None:
        """As AsyncMqClient.add_consumer."""
        self._loop.run(self._face.add_consumer(consumer))

    def subscribe(self, group: str, topic: str, expression: Expression | str = "*") -> None:
        """As AsyncMqClient.subscribe."""
        self._loop.run(self._face.subscribe(group, topic, expression))

    def unsubscribe(self, group: str, topic: str) -> None:
        """As AsyncMqClient.unsubscribe."""
        self._loop.run(self._face.unsubscribe(group, topic))

    def remove_producer(self, group: str) -> None:
        """As AsyncMqClient.remove_producer."""
        self._loop.run(self._face.remove_producer(group))

    def remove_consumer(self, group: str) -> None:
        """As AsyncMqClient.remove_consumer."""
        self._loop.run(self._face.remove_consumer(group))

    def on_consumers_changed(self, callback: Callable[[str], None]) -> None:
        """As AsyncMqClient.on_consumers_changed."""
        self._there(self._face.on_consumers_changed, callback)

    def watch(self, topic: str, on_change: OnChange) -> Callable[[], None]:
        """As AsyncMqClient.watch."""
        end = self._loop.run(self._face.watch(topic, on_change))
        return lambda: self._there(end)

    def known(self, topic: str) -> Known | None:
        """As AsyncMqClient.known."""
        return self._there(self._face.known, topic)

    def publish_info(self, topic: str) -> PublishInfo:
        """As AsyncMqClient.publish_info."""
        return self._loop.run(self._face.publish_info(topic))

    def subscribe_queues(self, topic: str) -> Queues:
        """As AsyncMqClient.subscribe_queues."""
        return self._loop.run(self._face.subscribe_queues(topic))

    def master_address(self, broker_name: str) -> str | None:
        """As AsyncMqClient.master_address."""
        return self._there(self._face.master_address, broker_name)

    def pull_from(
        self, broker_name: str, wanted_id: int = MASTER_ID, *, only_this: bool = False
    ) -> PullFrom | None:
        """As AsyncMqClient.pull_from."""
        return self._there(self._face.pull_from, broker_name, wanted_id, only_this=only_this)

    def broker_of(self, queue: MessageQueue) -> str:
        """As AsyncMqClient.broker_of."""
        return self._there(self._face.broker_of, queue)

    def broker_version(self, address: str) -> int | None:
        """As AsyncMqClient.broker_version."""
        return self._there(self._face.broker_version, address)
