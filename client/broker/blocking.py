"""The agent for code without an event loop."""

from collections.abc import Sequence
from typing import Self

from client.blocking import LoopThread
from client.broker.agent import BrokerAgent
from client.broker.config import BrokerConfig
from client.broker.events import Failed, Listener, MasterChanged, Registered, log_event
from client.wire.options import RemotingOptions
from remoting.data_version import DataVersion
from remoting.topic_config import TopicConfig
from remoting.topic_queue_mapping import TopicQueueMappingInfo


class BlockingBrokerAgent:
    """Announces a broker while its `with` block runs; may be used from several threads.

    `listener` is told all that happens, on a thread of the agent's."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        listener: Listener = log_event,
        options: RemotingOptions | None = None,
    ) -> None:
        self._agent = BrokerAgent(config, listener=listener, options=options)
        self._loop = LoopThread()

    def __enter__(self) -> Self:
        """OSError when it is to listen and cannot."""
        try:
            self._loop.run(self._agent.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unregister everywhere and end. Failures are told and otherwise ignored."""
        if not self._loop.closed:
            try:
                self._loop.run(self._agent.close())
            finally:
                self._loop.close()

    @property
    def config(self) -> BrokerConfig:
        """As it is now; the broker id may have changed."""
        return self._agent.config

    @property
    def topics(self) -> dict[str, TopicConfig]:
        """What it announces."""
        return self._agent.topics

    @property
    def data_version(self) -> DataVersion:
        """What it calls the state of its topics."""
        return self._agent.data_version

    @property
    def master(self) -> MasterChanged:
        """What a slave was told last of its master."""
        return self._agent.master

    @property
    def min_broker_id(self) -> int | None:
        """The smallest id of the brokers of its name, as far as somebody told."""
        return self._agent.min_broker_id

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Those that it announces itself to."""
        return self._agent.name_servers

    def set_name_servers(self, addresses: Sequence[str]) -> None:
        """As BrokerAgent.set_name_servers."""

        async def change() -> None:
            self._agent.set_name_servers(addresses)

        self._loop.run(change())

    def register(
        self, *, check_order: bool = True, oneway: bool = False, forced: bool = True
    ) -> list[Registered | Failed]:
        """As BrokerAgent.register."""
        return self._loop.run(self._agent.register(check_order=check_order, oneway=oneway, forced=forced))

    def put_topics(
        self,
        *topics: TopicConfig,
        mappings: Sequence[TopicQueueMappingInfo] = (),
        by_itself: bool = False,
    ) -> list[Registered | Failed]:
        """As BrokerAgent.put_topics."""
        return self._loop.run(self._agent.put_topics(*topics, mappings=mappings, by_itself=by_itself))

    def delete_topic(self, name: str) -> bool:
        """As BrokerAgent.delete_topic."""
        return self._loop.run(self._agent.delete_topic(name))

    def change_broker_id(self, broker_id: int) -> list[Registered | Failed]:
        """As BrokerAgent.change_broker_id."""
        return self._loop.run(self._agent.change_broker_id(broker_id))
