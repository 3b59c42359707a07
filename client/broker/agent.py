"""The agent: a broker's whole behaviour towards its name servers, from its first registration to its last farewell."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Self, TypeVar

from msgspec.structs import replace

from client.broker import messages
from client.broker.config import BrokerConfig, checked_topic
from client.broker.events import (
    Event,
    Failed,
    Listener,
    MasterChanged,
    MinBrokerIdChanged,
    OrderTopicsChanged,
    Registered,
    Unregistered,
    log,
    log_event,
    pushed,
    registered,
)
from client.broker.listening import BrokerPort, answer
from client.broker.rounds import ask_all, failed, needs_registration, tell_all
from client.broker.schedule import Jobs, keep_doing, schedule
from client.broker.topics import Piece, TopicTable, increment, split, starting_table, whole
from client.broker.versions import KeptVersion, read_kept, write_kept
from client.errors import AnswerError, ConnectionClosed, RemotingError
from client.wire.call import Call
from client.wire.connections import Connect, tcp_connect
from client.wire.options import RemotingOptions
from client.wire.remoting_client import AsyncRemotingClient
from remoting.codes import RequestCode, ResponseCode
from remoting.command import Command
from remoting.data_version import DataVersion
from remoting.language import LanguageCode
from remoting.topic_config import TopicConfig
from remoting.topic_queue_mapping import TopicQueueMappingInfo
from remoting.version import release_ordinal

NOTIFY_MIN_BROKER_ID_CHANGE: Final = RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE
T = TypeVar("T")
Told = TypeVar("Told", Registered, Unregistered)

UNREGISTER_S: Final = 3.0
SINGLE_TOPIC_S: Final = 3.0
HEARTBEAT_S: Final = 1.0
QUESTION_S: Final = 3.0
LAST_ROUND_S: Final = 3.0
"""How long a round that is under way may take once the agent is to end."""
_CLOSES_ON_TIMEOUT: Final = release_ordinal("4.9.1")
_ALWAYS_INCREMENTS: Final = release_ordinal("5.1.4")


def wall_clock_ms() -> int:
    """Milliseconds since 1970, as data versions have them."""
    return time.time_ns() // 1_000_000


def options_for(config: BrokerConfig) -> RemotingOptions:
    """How a broker of that release calls."""
    return RemotingOptions(
        version=config.ordinal,
        language=LanguageCode.JAVA,
        serialize_type=config.header_type,
        close_on_timeout=config.ordinal >= _CLOSES_ON_TIMEOUT,
        try_all_name_servers=not config.plays_5x,
    )


class AsyncBrokerAgent:
    """Announces a broker while its `async with` block runs, which is entered when the first round is over.

    `listener` is told all that happens. `options` and `connect` are those of the connections; with `client` the agent
    uses somebody else's, and leaves it open. `now_ms` is the clock of data versions.
    ConfigError for a broker that cannot be announced."""

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
            self._client.on_push(NOTIFY_MIN_BROKER_ID_CHANGE, lambda _, push: self._answer(push))
        self._port = BrokerPort(self._answer)
        self._table = starting_table(self._config, self._kept(), now_ms())
        self._whole: Piece | None = None
        self._rounds = asyncio.Lock()
        self._background: asyncio.Task[None] | None = None
        self._closed = False
        self._master = MasterChanged(None, None)
        self._min_broker_id: int | None = None

    async def __aenter__(self) -> Self:
        """OSError when it is to listen and cannot."""
        if self._config.listen:
            await self._port.open(self._config.bind_address, self._config.listen_port)
        try:
            self._keep()
            await self.register()
            self._background = asyncio.create_task(self._run())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def wait(self) -> None:
        """Returns when the agent is closed."""
        if self._background is not None:
            await asyncio.wait({self._background})
            if not self._background.cancelled():
                self._background.result()  # never ends by itself but by an error of ours

    async def close(self) -> None:
        """Unregister everywhere, one name server after the other, and end. Failures are told and otherwise ignored."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._end_rounds()
            await self._leave()
        finally:
            self._keep()
            await self._port.close()
            if self._owns_client:
                await self._client.close()

    # what it is

    @property
    def config(self) -> BrokerConfig:
        """As it is now; the broker id may have changed."""
        return self._config

    @property
    def topics(self) -> dict[str, TopicConfig]:
        """What it announces."""
        return dict(self._table.topics)

    @property
    def data_version(self) -> DataVersion:
        """What it calls the state of its topics."""
        return self._table.version

    @property
    def master(self) -> MasterChanged:
        """What a slave was told last of its master."""
        return self._master

    @property
    def min_broker_id(self) -> int | None:
        """The smallest id of the brokers of its name, as far as somebody told."""
        return self._min_broker_id

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Those that it announces itself to."""
        return self._name_servers

    def set_name_servers(self, addresses: Sequence[str]) -> None:
        """Announce it to these from the next round on. AddressError, and nothing changed, if one is no address."""
        self._client.set_name_servers(addresses)
        self._name_servers = tuple(dict.fromkeys(addresses))

    # what it can be asked for

    async def register(
        self, *, check_order: bool = True, oneway: bool = False, forced: bool = True
    ) -> list[Registered | Failed]:
        """One round: all topics to all name servers, and what became of it, in the order in which they answered.

        Unless `forced`, only if one of them needs it; nothing is answered to a oneway registration. `check_order`:
        order topics are those that the first answer lists."""
        async with self._turn():
            if self._config.plays_5x and self._config.enable_split_registration:
                return await self._register_in_pieces(check_order, oneway)
            if not forced and not await self._is_needed():
                return []
            if self._whole is None:
                self._whole = whole(self._table, self._config)
            return await self._announce(self._whole, check_order, oneway)

    async def put_topics(
        self,
        *topics: TopicConfig,
        mappings: Sequence[TopicQueueMappingInfo] = (),
        by_itself: bool = False,
    ) -> list[Registered | Failed]:
        """Add topics or replace them, and tell all name servers of these alone; `mappings` of static topics.

        A broker of 4.x tells each on its own. Brokers before 5.1.4 tell of topics that came about without an
        administrator, `by_itself`, in a whole registration that is not answered. ConfigError, and nothing changed, for
        a topic that a broker cannot have."""
        for topic in topics:
            checked_topic(topic)
        async with self._turn():
            if by_itself and self._config.ordinal < _ALWAYS_INCREMENTS:
                self._change(self._table.with_topics(topics, self._now_ms(), mappings))
                return await self._announce(whole(self._table, self._config), False, oneway=True)
            at_once = [topics] if topics and self._config.plays_5x else [(topic,) for topic in topics]
            outcomes: list[Registered | Failed] = []
            for some in at_once:
                self._change(self._table.with_topics(some, self._now_ms(), mappings))
                outcomes += await self._announce_topics(some)
            return outcomes

    async def delete_topic(self, name: str) -> bool:
        """Take a topic away; False if there is none. Name servers hear of it in the next round, by its absence."""
        async with self._turn():
            table = self._table.without_topic(name, self._now_ms())
            if table is self._table:
                return False
            self._change(table)
            return True

    async def change_broker_id(self, broker_id: int) -> list[Registered | Failed]:
        """From slave to master, or back, and tell: at once, and from 5.0 on so that it is answered."""
        self._config = replace(self._config, broker_id=broker_id).checked()
        if self._config.plays_5x:
            return await self.register(forced=self._config.force_register)
        return await self.register(oneway=True)

    # how it does that

    async def _run(self) -> None:
        jobs = Jobs(
            register=self._round,
            beat=self._beat,
            ask_members=self._ask_members,
            ask_cluster=lambda: self._ask(messages.cluster_info(self._config)),
        )
        async with asyncio.TaskGroup() as group:
            for job in schedule(self._config, jobs):
                group.create_task(keep_doing(job))

    async def _round(self) -> None:
        with suppress(ConnectionClosed):  # it was due when the agent was closed
            await self.register(forced=self._config.force_register)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Rounds and changes come one after the other."""
        async with self._rounds:
            if self._closed:
                raise ConnectionClosed("", "nothing is announced any more: the agent is closed")
            yield

    async def _end_rounds(self) -> None:
        """What is under way may end, so that none of it comes after the farewell."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_ROUND_S), self._rounds:
                pass
        if self._background is not None:
            self._background.cancel()
            await asyncio.wait({self._background})

    async def _leave(self) -> None:
        farewell = messages.unregistration(self._config)
        for address in self._name_servers:
            await self._ask_all([address], farewell, UNREGISTER_S, lambda where, _: Unregistered(where))

    async def _register_in_pieces(self, check_order: bool, oneway: bool) -> list[Registered | Failed]:
        outcomes = []
        for piece in split(self._table, self._config):
            self._table = self._table.newer(self._now_ms())
            outcomes += await self._announce(piece, check_order, oneway)
        return outcomes

    async def _is_needed(self) -> bool:
        version = self._table.version
        query = messages.version_query(self._config, version)
        outcomes = await ask_all(
            self._client,
            self._name_servers,
            query,
            self._config.budget_s,
            lambda _, answer: answer,
            self._tell_failure,
        )
        return needs_registration(version, outcomes)

    async def _announce(self, piece: Piece, check_order: bool, oneway: bool) -> list[Registered | Failed]:
        call = messages.registration(self._config, piece, self._table.version, self._now_ms())
        budget_s = self._config.budget_s
        if oneway:
            await tell_all(self._client, self._name_servers, call.request, budget_s, self._tell)
            return []
        outcomes = await self._ask_all(self._name_servers, call, budget_s, registered)
        first = next((outcome for outcome in outcomes if isinstance(outcome, Registered)), None)
        if first is not None:
            self._heed(first, check_order)
        return outcomes

    async def _announce_topics(self, topics: Sequence[TopicConfig]) -> list[Registered | Failed]:
        """These alone, as they are in the table now."""
        if not (self._config.plays_5x and self._config.enable_single_topic_register):
            names = [topic.topic_name for topic in topics]
            return await self._announce(increment(self._table, self._config, names), True, oneway=False)
        outcomes: list[Registered | Failed] = []
        for topic in topics:
            call = messages.single_topic(self._config, topic)
            outcomes += await self._ask_all(
                self._name_servers, call, SINGLE_TOPIC_S, lambda where, _: Registered(where)
            )
        return outcomes

    def _heed(self, first: Registered, check_order: bool) -> None:
        """What a name server answers counts if it was the first to answer."""
        master = MasterChanged(first.master_addr, first.ha_server_addr or self._master.ha_server_addr)
        if master != self._master:
            self._master = master
            self._tell(master)
        if check_order and first.order_topics is not None:
            table = self._table.with_order(first.order_topics, self._now_ms())
            if table is not self._table:
                self._change(table)
                ordered = [name for name, topic in table.topics.items() if topic.order]
                self._tell(OrderTopicsChanged(frozenset(ordered)))

    async def _beat(self) -> None:
        call = messages.heartbeat(self._config, self._table.version)
        await tell_all(self._client, self._name_servers, call.request, HEARTBEAT_S, self._tell)

    async def _ask_members(self) -> None:
        addresses = await self._ask(messages.member_group(self._config))
        if addresses:
            smallest = min(addresses)
            self._learn(MinBrokerIdChanged(smallest, addresses[smallest]))

    async def _ask(self, call: Call[T]) -> T | None:
        """What the chosen name server answers; None, and it is told why, when it does not."""
        try:
            return await self._client.ask(None, call, timeout_s=QUESTION_S)
        except (RemotingError, AnswerError) as error:
            self._tell(failed(error.address, call.request, error))
            return None

    async def _ask_all(
        self, addresses: Sequence[str], call: Call[T], timeout_s: float, outcome: Callable[[str, T], Told]
    ) -> list[Told | Failed]:
        return await ask_all(self._client, addresses, call, timeout_s, outcome, self._tell)

    def _answer(self, command: Command) -> Command:
        """To whoever asks this broker."""
        if command.code != NOTIFY_MIN_BROKER_ID_CHANGE or not self._config.plays_5x:
            return answer(command)
        change = pushed(command)
        if change is None:
            return command.reply(ResponseCode.SYSTEM_ERROR, remark="minBrokerId is no number")
        self._learn(change)
        return command.reply(ResponseCode.SUCCESS)

    def _learn(self, change: MinBrokerIdChanged) -> None:
        if change.min_broker_id != self._min_broker_id:
            self._min_broker_id = change.min_broker_id
            self._tell(change)

    def _tell_failure(self, outcome: object) -> None:
        if isinstance(outcome, Failed):
            self._tell(outcome)

    def _tell(self, event: Event) -> None:
        try:
            self._listener(event)
        except Exception:  # the listener is not ours, and its failure no reason to stop announcing
            log.exception("a listener failed to take %s", event)

    def _change(self, table: TopicTable) -> None:
        self._table = table
        self._whole = None
        self._keep()

    def _kept(self) -> KeptVersion | None:
        return read_kept(Path(self._config.data_version_file)) if self._config.data_version_file else None

    def _keep(self) -> None:
        if self._config.data_version_file:
            try:
                write_kept(Path(self._config.data_version_file), self._table.kept())
            except OSError as error:
                log.error("the data version is not kept: %s", error)
