"""The agent: a broker's behaviour towards its name servers, from the first registration to the unregistration."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Self, TypeVar

from msgspec.structs import replace

from mqns.broker import requests
from mqns.broker.config import BrokerConfig, checked_topic
from mqns.broker.events import (
    BrokerEvent,
    Failed,
    Listener,
    MasterChanged,
    MinBrokerIdChanged,
    OrderTopicsChanged,
    Registered,
    Unregistered,
    log,
    pushed,
    registered,
)
from mqns.broker.lines import line, log_event
from mqns.broker.rounds import call_all, failed, needs_registration, oneway_all
from mqns.broker.schedule import Jobs, run_periodically, schedule
from mqns.broker.server import BrokerServer, respond
from mqns.broker.topics import (
    TopicBatch,
    TopicTable,
    full_batch,
    increment_batch,
    initial_table,
    split_batches,
)
from mqns.broker.versions import StoredVersion, read_stored_version, write_stored_version
from mqns.errors import ConnectionClosed, RemotingError, ResponseError
from mqns.remoting.call import Call
from mqns.remoting.connection_table import Connect, tcp_connect
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.language import LanguageCode
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo
from rocketmq_remoting.version import release_ordinal

NOTIFY_MIN_BROKER_ID_CHANGE: Final = RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE
T = TypeVar("T")
Done = TypeVar("Done", Registered, Unregistered)

UNREGISTER_S: Final = 3.0
SINGLE_TOPIC_S: Final = 3.0
HEARTBEAT_S: Final = 1.0
QUERY_S: Final = 3.0
LAST_ROUND_S: Final = 3.0
"""Most time of a round in progress when the agent is closed."""
_CLOSES_ON_TIMEOUT: Final = release_ordinal("4.9.1")
_ALWAYS_INCREMENTS: Final = release_ordinal("5.1.4")


def wall_clock_ms() -> int:
    """Return the milliseconds since 1970, as in data versions."""
    return time.time_ns() // 1_000_000


def options_for(config: BrokerConfig) -> RemotingOptions:
    """Return the remoting options of a broker of that release."""
    return RemotingOptions(
        version=config.ordinal,
        language=LanguageCode.JAVA,
        serialize_type=config.header_type,
        close_on_timeout=config.ordinal >= _CLOSES_ON_TIMEOUT,
        try_all_name_servers=not config.is_5x,
    )


class AsyncBrokerAgent:
    """Keeps a broker registered while its `async with` block runs, which is entered after the first round.

    `listener` is called with each BrokerEvent. `options` and `connect` are those of the connections; with `client` the
    agent uses that client and does not close it. `now_ms` is the clock of data versions. Raises ConfigError."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        listener: Listener = log_event,
        options: RemotingOptions | None = None,
        connect: Connect = tcp_connect,
        client: AsyncRemotingClient | None = None,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._config = config.checked()
        self._listener = listener
        self._now_ms = now_ms
        self._name_servers = self._config.name_servers
        self._owns_client = client is None
        self._client = client or AsyncRemotingClient(
            options or options_for(self._config), name_servers=self._name_servers, connect=connect
        )
        if self._owns_client:
            self._client.on_push(NOTIFY_MIN_BROKER_ID_CHANGE, lambda _, push: self._respond(push))
        self._port = BrokerServer(self._respond)
        self._table = initial_table(self._config, self._stored(), now_ms())
        self._full: TopicBatch | None = None
        self._rounds = asyncio.Lock()
        self._background: asyncio.Task[None] | None = None
        self._closed = False
        self._master = MasterChanged(None, None)
        self._min_broker_id: int | None = None

    async def __aenter__(self) -> Self:
        """Open the port, register. OSError if the port cannot be opened."""
        if self._config.listen:
            await self._port.open(self._config.bind_address, self._config.listen_port)
        try:
            self._store()
            await self.register()
            self._background = asyncio.create_task(self._run())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def wait(self) -> None:
        """Return when the agent is closed."""
        if self._background is not None:
            await asyncio.wait({self._background})
            if not self._background.cancelled():
                self._background.result()  # raises the error that ended it

    async def close(self) -> None:
        """Unregister at each name server, one after the other, and end. Failures are events only."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._finish_rounds()
            await self._unregister()
        finally:
            self._store()
            await self._port.close()
            if self._owns_client:
                await self._client.close()

    # state

    @property
    def config(self) -> BrokerConfig:
        """The current configuration; the broker id may have changed."""
        return self._config

    @property
    def topics(self) -> dict[str, TopicConfig]:
        """The registered topics by name."""
        return dict(self._table.topics)

    @property
    def data_version(self) -> DataVersion:
        """The data version of the topics."""
        return self._table.version

    @property
    def master(self) -> MasterChanged:
        """The last master address that a slave got."""
        return self._master

    @property
    def min_broker_id(self) -> int | None:
        """The smallest broker id of its name, None if unknown."""
        return self._min_broker_id

    @property
    def name_servers(self) -> tuple[str, ...]:
        """The name servers at which the broker registers."""
        return self._name_servers

    def set_name_servers(self, addresses: Sequence[str]) -> None:
        """Register at these from the next round on. AddressError, without any change, if one is no address."""
        self._client.set_name_servers(addresses)
        self._name_servers = tuple(dict.fromkeys(addresses))

    # operations

    async def register(
        self, *, check_order: bool = True, oneway: bool = False, forced: bool = True
    ) -> list[Registered | Failed]:
        """Register all topics at all name servers; return the outcomes in the order of the responses.

        Unless `forced`, only if one of them needs it. A oneway registration has no outcomes. `check_order`: take the
        order topics from the first response."""
        async with self._exclusive():
            if self._config.is_5x and self._config.enable_split_registration:
                return await self._register_split(check_order, oneway)
            if not forced and not await self._is_needed():
                return []
            if self._full is None:
                self._full = full_batch(self._table, self._config)
            return await self._register_batch(self._full, check_order, oneway)

    async def put_topics(
        self,
        *topics: TopicConfig,
        mappings: Sequence[TopicQueueMappingInfo] = (),
        auto_created: bool = False,
    ) -> list[Registered | Failed]:
        """Add or replace topics and register only these at all name servers; `mappings` of static topics.

        A broker of 4.x registers them one by one. Brokers before 5.1.4 register topics that were created without an
        administrator, `auto_created`, in a full oneway registration. ConfigError, without any change, for an invalid
        topic."""
        for topic in topics:
            checked_topic(topic)
        async with self._exclusive():
            if auto_created and self._config.ordinal < _ALWAYS_INCREMENTS:
                self._change(self._table.with_topics(topics, self._now_ms(), mappings))
                return await self._register_batch(full_batch(self._table, self._config), False, oneway=True)
            at_once = [topics] if topics and self._config.is_5x else [(topic,) for topic in topics]
            outcomes: list[Registered | Failed] = []
            for some in at_once:
                self._change(self._table.with_topics(some, self._now_ms(), mappings))
                outcomes += await self._register_topics(some)
            return outcomes

    async def delete_topic(self, name: str) -> bool:
        """Delete a topic; False if there is none. The next round registers the broker without it."""
        async with self._exclusive():
            table = self._table.without_topic(name, self._now_ms())
            if table is self._table:
                return False
            self._change(table)
            return True

    async def change_broker_id(self, broker_id: int) -> list[Registered | Failed]:
        """Change from slave to master, or back, and register at once: oneway in 4.x, with response in 5.x."""
        self._config = replace(self._config, broker_id=broker_id).checked()
        if self._config.is_5x:
            return await self.register(forced=self._config.force_register)
        return await self.register(oneway=True)

    # background

    async def _run(self) -> None:
        jobs = Jobs(
            register=self._periodic_round,
            heartbeat=self._send_heartbeats,
            query_members=self._query_members,
            query_cluster=lambda: self._query(requests.cluster_info(self._config)),
        )
        async with asyncio.TaskGroup() as group:
            for job in schedule(self._config, jobs):
                group.create_task(run_periodically(job))

    async def _periodic_round(self) -> None:
        with suppress(ConnectionClosed):  # the agent was closed when the round was due
            await self.register(forced=self._config.force_register)

    @asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        """Serialise rounds and changes. ConnectionClosed once the agent is closed."""
        async with self._rounds:
            if self._closed:
                raise ConnectionClosed("", "not registered: the agent is closed")
            yield

    async def _finish_rounds(self) -> None:
        """Wait for the round in progress, so that no registration follows the unregistration."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_ROUND_S), self._rounds:
                pass
        if self._background is not None:
            self._background.cancel()
            await asyncio.wait({self._background})

    async def _unregister(self) -> None:
        call = requests.unregistration(self._config)
        for address in self._name_servers:
            await self._call_all([address], call, UNREGISTER_S, lambda where, _: Unregistered(where))

    async def _register_split(self, check_order: bool, oneway: bool) -> list[Registered | Failed]:
        outcomes = []
        for batch in split_batches(self._table, self._config):
            self._table = self._table.newer(self._now_ms())
            outcomes += await self._register_batch(batch, check_order, oneway)
        return outcomes

    async def _is_needed(self) -> bool:
        version = self._table.version
        query = requests.version_query(self._config, version)
        outcomes = await call_all(
            self._client,
            self._name_servers,
            query,
            self._config.round_timeout_s,
            lambda _, result: result,
            self._emit_failure,
        )
        return needs_registration(version, outcomes)

    async def _register_batch(
        self, batch: TopicBatch, check_order: bool, oneway: bool
    ) -> list[Registered | Failed]:
        call = requests.registration(self._config, batch, self._table.version, self._now_ms())
        round_timeout_s = self._config.round_timeout_s
        if oneway:
            await oneway_all(self._client, self._name_servers, call.request, round_timeout_s, self._emit)
            return []
        outcomes = await self._call_all(self._name_servers, call, round_timeout_s, registered)
        first = next((outcome for outcome in outcomes if isinstance(outcome, Registered)), None)
        if first is not None:
            self._apply(first, check_order)
        return outcomes

    async def _register_topics(self, topics: Sequence[TopicConfig]) -> list[Registered | Failed]:
        """Register only these topics, as they are in the table now."""
        if not (self._config.is_5x and self._config.enable_single_topic_register):
            names = [topic.topic_name for topic in topics]
            return await self._register_batch(
                increment_batch(self._table, self._config, names), True, oneway=False
            )
        outcomes: list[Registered | Failed] = []
        for topic in topics:
            call = requests.single_topic(self._config, topic)
            outcomes += await self._call_all(
                self._name_servers, call, SINGLE_TOPIC_S, lambda where, _: Registered(where)
            )
        return outcomes

    def _apply(self, first: Registered, check_order: bool) -> None:
        """Apply master and order topics of the first response of a round."""
        master = MasterChanged(first.master_addr, first.ha_server_addr or self._master.ha_server_addr)
        if master != self._master:
            self._master = master
            self._emit(master)
        if check_order and first.order_topics is not None:
            table = self._table.with_order(first.order_topics, self._now_ms())
            if table is not self._table:
                self._change(table)
                ordered = [name for name, topic in table.topics.items() if topic.order]
                self._emit(OrderTopicsChanged(frozenset(ordered)))

    async def _send_heartbeats(self) -> None:
        call = requests.heartbeat(self._config, self._table.version)
        await oneway_all(self._client, self._name_servers, call.request, HEARTBEAT_S, self._emit)

    async def _query_members(self) -> None:
        addresses = await self._query(requests.member_group(self._config))
        if addresses:
            smallest = min(addresses)
            self._set_min_broker_id(MinBrokerIdChanged(smallest, addresses[smallest]))

    async def _query(self, call: Call[T]) -> T | None:
        """Return the result of a call to the selected name server; None after a failure, which is an event."""
        try:
            return await self._client.call(None, call, timeout_s=QUERY_S)
        except (RemotingError, ResponseError) as error:
            self._emit(failed(error.address, call.request, error))
            return None

    async def _call_all(
        self, addresses: Sequence[str], call: Call[T], timeout_s: float, outcome: Callable[[str, T], Done]
    ) -> list[Done | Failed]:
        return await call_all(self._client, addresses, call, timeout_s, outcome, self._emit)

    def _respond(self, command: Command) -> Command:
        """Return the response to a request to this broker."""
        if command.code != NOTIFY_MIN_BROKER_ID_CHANGE or not self._config.is_5x:
            return respond(command)
        change = pushed(command)
        if change is None:
            return command.reply(ResponseCode.SYSTEM_ERROR, remark="minBrokerId is no number")
        self._set_min_broker_id(change)
        return command.reply(ResponseCode.SUCCESS)

    def _set_min_broker_id(self, change: MinBrokerIdChanged) -> None:
        if change.min_broker_id != self._min_broker_id:
            self._min_broker_id = change.min_broker_id
            self._emit(change)

    def _emit_failure(self, outcome: object) -> None:
        if isinstance(outcome, Failed):
            self._emit(outcome)

    def _emit(self, event: BrokerEvent) -> None:
        try:
            self._listener(event)
        except Exception:  # an error of the listener must not end the agent
            log.exception("the listener failed with %s; the agent continues", line(event))

    def _change(self, table: TopicTable) -> None:
        self._table = table
        self._full = None
        self._store()

    def _stored(self) -> StoredVersion | None:
        return (
            read_stored_version(Path(self._config.data_version_file))
            if self._config.data_version_file
            else None
        )

    def _store(self) -> None:
        if self._config.data_version_file:
            try:
                write_stored_version(Path(self._config.data_version_file), self._table.stored())
            except OSError as error:
                log.error("the data version is not kept: %s; the next start makes a new one", error)
