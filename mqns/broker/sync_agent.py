"""The sync broker agent."""

from collections.abc import Sequence
from typing import Self

from mqns.broker.agent import AsyncBrokerAgent
from mqns.broker.config import BrokerConfig
from mqns.broker.events import Failed, Listener, MasterChanged, Registered
from mqns.broker.lines import log_event
from mqns.remoting.options import RemotingOptions
from mqns.sync import SyncClient
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo


class BrokerAgent(SyncClient[AsyncBrokerAgent]):
    """Keeps a broker registered while its `with` block runs; may be used from several threads.

    `listener` is called with each BrokerEvent, in the agent's thread."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        listener: Listener = log_event,
        options: RemotingOptions | None = None,
    ) -> None:
        super().__init__(AsyncBrokerAgent(config, listener=listener, options=options))

    def __enter__(self) -> Self:
        """Open the port, register. OSError if the port cannot be opened."""
        try:
            self._loop.run(self._async_client.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        return self

    @property
    def config(self) -> BrokerConfig:
        """The current configuration; the broker id may have changed."""
        return self._async_client.config

    @property
    def topics(self) -> dict[str, TopicConfig]:
        """The registered topics by name."""
        return self._async_client.topics

    @property
    def data_version(self) -> DataVersion:
        """The data version of the topics."""
        return self._async_client.data_version

    @property
    def master(self) -> MasterChanged:
        """The last master address that a slave got."""
        return self._async_client.master

    @property
    def min_broker_id(self) -> int | None:
        """The smallest broker id of its name, None if unknown."""
        return self._async_client.min_broker_id

    @property
    def name_servers(self) -> tuple[str, ...]:
        """The name servers at which the broker registers."""
        return self._async_client.name_servers

    def set_name_servers(self, addresses: Sequence[str]) -> None:
        """See AsyncBrokerAgent.set_name_servers."""
        self._call_in_loop(self._async_client.set_name_servers, addresses)

    def register(
        self, *, check_order: bool = True, oneway: bool = False, forced: bool = True
    ) -> list[Registered | Failed]:
        """See AsyncBrokerAgent.register."""
        return self._loop.run(
            self._async_client.register(check_order=check_order, oneway=oneway, forced=forced)
        )

    def put_topics(
        self,
        *topics: TopicConfig,
        mappings: Sequence[TopicQueueMappingInfo] = (),
        auto_created: bool = False,
    ) -> list[Registered | Failed]:
        """See AsyncBrokerAgent.put_topics."""
        return self._loop.run(
            self._async_client.put_topics(*topics, mappings=mappings, auto_created=auto_created)
        )

    def delete_topic(self, name: str) -> bool:
        """See AsyncBrokerAgent.delete_topic."""
        return self._loop.run(self._async_client.delete_topic(name))

    def change_broker_id(self, broker_id: int) -> list[Registered | Failed]:
        """See AsyncBrokerAgent.change_broker_id."""
        return self._loop.run(self._async_client.change_broker_id(broker_id))
