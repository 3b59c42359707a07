"""The agent for code without an event loop."""

from collections.abc import Sequence
from typing import Self

from client.blocking import Blocking
from client.broker.agent import AsyncBrokerAgent
from client.broker.config import BrokerConfig
from client.broker.events import Failed, Listener, MasterChanged, Registered, log_event
from client.wire.options import RemotingOptions
from remoting.data_version import DataVersion
from remoting.topic_config import TopicConfig
from remoting.topic_queue_mapping import TopicQueueMappingInfo


class BrokerAgent(Blocking[AsyncBrokerAgent]):
    """Announces a broker while its `with` block runs; may be used from several threads.

    `listener` is told all that happens, on a thread of the agent's."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        listener: Listener = log_event,
        options: RemotingOptions | None = None,
    ) -> None:
        super().__init__(AsyncBrokerAgent(config, listener=listener, options=options))

    def __enter__(self) -> Self:
        """OSError when it is to listen and cannot."""
        try:
            self._loop.run(self._face.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        return self

    @property
    def config(self) -> BrokerConfig:
        """As it is now; the broker id may have changed."""
        return self._face.config

    @property
    def topics(self) -> dict[str, TopicConfig]:
        """What it announces."""
        return self._face.topics

    @property
    def data_version(self) -> DataVersion:
        """What it calls the state of its topics."""
        return self._face.data_version

    @property
    def master(self) -> MasterChanged:
        """What a slave was told last of its master."""
        return self._face.master

    @property
    def min_broker_id(self) -> int | None:
        """The smallest id of the brokers of its name, as far as somebody told."""
        return self._face.min_broker_id

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Those that it announces itself to."""
        return self._face.name_servers

    def set_name_servers(self, addresses: Sequence[str]) -> None:
        """As AsyncBrokerAgent.set_name_servers."""
        self._there(self._face.set_name_servers, addresses)

    def register(
        self, *, check_order: bool = True, oneway: bool = False, forced: bool = True
    ) -> list[Registered | Failed]:
        """As AsyncBrokerAgent.register."""
        return self._loop.run(self._face.register(check_order=check_order, oneway=oneway, forced=forced))

    def put_topics(
        self,
        *topics: TopicConfig,
        mappings: Sequence[TopicQueueMappingInfo] = (),
        by_itself: bool = False,
    ) -> list[Registered | Failed]:
        """As AsyncBrokerAgent.put_topics."""
        return self._loop.run(self._face.put_topics(*topics, mappings=mappings, by_itself=by_itself))

    def delete_topic(self, name: str) -> bool:
        """As AsyncBrokerAgent.delete_topic."""
        return self._loop.run(self._face.delete_topic(name))

    def change_broker_id(self, broker_id: int) -> list[Registered | Failed]:
        """As AsyncBrokerAgent.change_broker_id."""
        return self._loop.run(self._face.change_broker_id(broker_id))
