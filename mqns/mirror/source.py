"""What one name server has: its brokers, looked at each round, and their topics, read in turn."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from math import inf
from typing import Final, Protocol, TypeVar

from mqns.errors import ClientError, RemotingError, ResponseError
from mqns.mirror.pace import Pace
from mqns.mirror.target import TopicRow
from mqns.mirror.topic_table import TopicTable
from mqns.name_server import calls
from mqns.remoting.call import Call
from mqns.tasks import run_concurrently
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.route import BrokerData

T = TypeVar("T")
GRACE_S: Final = 45.0
"""How long what a name server lacks counts for nothing after a connection to it was made: it may have been started
again, and brokers register every 30 s (registerNameServerPeriod)."""
AGAIN_S: Final = 30.0
"""How often a topic is read, if there is time: as often as a client does (pollNameServerInterval)."""
AT_ONCE: Final = 4
"""Calls under way at one name server."""
PAGE: Final = 64


class Caller(Protocol):
    """A client of the one name server."""

    async def call(self, call: Call[T]) -> T:
        """Make a call. Raises RemotingError, ResponseError."""
        ...


class Source:
    """One name server. `connects` is how many connections were made to it: with another one it may be another process.
    `service_start` asks it when its service began (None of Java's), `why` returns why a call of its was not answered.

    It is asked for brokers (106), topics (206, or 224) and routes (105), none of which changes anything there. Request
    322 would tell which brokers changed their topics, but renews the lease of the broker at servers of 5.x."""

    def __init__(
        self,
        address: str,
        caller: Caller,
        connects: Callable[[], int],
        *,
        service_start: Callable[[], Awaitable[str | None]],
        why: Callable[[RemotingError], Awaitable[str]],
        rate: float,
        grace_s: float = GRACE_S,
    ) -> None:
        self.address = address
        self.failure: str | None = "not asked yet"
        self.service_start: str | None = None
        self.brokers: Mapping[str, BrokerData] = {}
        self.routes_read = 0
        self._caller = caller
        self._connects = connects
        self._ask_service_start = service_start
        self._why = why
        self._connected = -1
        self._pace = Pace(rate)
        self._grace_s = grace_s
        self._complete_from = inf
        self._since: dict[str, float] = {}
        self._table = TopicTable()

    async def look(self) -> None:
        """Ask for all brokers; `failure` says why that failed."""
        try:
            info = await self._caller.call(calls.get_cluster_info())
            connected = self._connects()
            self.service_start = await self._ask_service_start()
            self._expect_process(connected)
        except RemotingError as error:
            self.fail(await self._why(error))
            return
        except ClientError as error:
            self.fail(_reason(error))
            return
        self.failure = None
        self.brokers = {name: data for name, data in info.broker_addr_table.items() if data.broker_addrs}
        if self._connects() != self._connected:
            self._connected = self._connects()
            self._complete_from = _now() + self._grace_s

    def fail(self, why: str) -> None:
        """Have it no brokers, and nothing of it count, until the next look."""
        self.failure = why
        self.brokers = {}
        self.service_start = None
        self._connected = -1

    @property
    def is_complete(self) -> bool:
        """Whether what it lacks is really gone there."""
        return self.failure is None and _now() >= self._complete_from

    def topics_of(self, name: str) -> tuple[TopicRow, ...] | None:
        """Return the topics of a broker; None until each was read since the broker came."""
        since = self._since.get(name)
        is_read = since is not None and self._table.all_read_since >= since
        return self._table.rows(name) if is_read else None

    def version_of(self, name: str) -> int:
        """Return a number that changes with the topics of a broker."""
        return self._table.version(name)

    @property
    def topics_left_out(self) -> int:
        """How many topics are not mirrored: static ones, and such as a redis-namesrv refuses."""
        return len(self._table.left_out)

    async def read_topics(self, names: set[str], until: float) -> None:
        """Read topics for these brokers, until a time (of the loop) at most; `failure` says why that failed.

        Raises TooManyRows."""
        now = _now()
        self._since = {name: self._since.get(name, now) for name in names}
        if not names:
            self._table = TopicTable()
            return
        try:
            self._table.list(await self._topic_list(), now)
            due = iter(self._table.due(max(now - AGAIN_S, *self._since.values())))
            while _now() < until and (page := [*islice(due, PAGE)]):
                await run_concurrently(lambda topic: self._read(topic, until), page, AT_ONCE)
        except (RemotingError, ResponseError) as error:
            self.failure = f"its topics are not read: {_reason(error)}"

    async def kv(self, namespace: str) -> dict[str, str] | None:
        """Return a namespace of the KV configuration; None if there is none, or `failure` says why it is not known."""
        try:
            table = await self._caller.call(calls.get_kv_list(namespace))
        except ClientError as error:
            self.failure = f"KV namespace {namespace!r}: {_reason(error)}"
            return None
        return None if table is None else table.table

    async def _topic_list(self) -> set[str]:
        """Return all topics; those of each cluster where the list of all is off (enableAllTopicList)."""
        try:
            listed = set((await self._caller.call(calls.get_topics())).topic_list)
        except ResponseError:
            listed = set()
            for cluster in sorted({data.cluster for data in self.brokers.values()}):
                listed |= {*(await self._caller.call(calls.get_topics_of_cluster(cluster))).topic_list}
        self._expect_process(self._connected)
        return listed

    async def _read(self, topic: str, until: float) -> None:
        if _now() < until:
            await self._pace.wait()
        asked_at = _now()
        if asked_at >= until:
            return
        try:
            route = await self._caller.call(calls.get_route(topic))
        except ResponseError as error:
            if error.code != ResponseCode.SUCCESS:  # it may be busy, or not ready
                raise
            self.failure = f"topic {topic!r}: {_reason(error)}"
            self._table.skip(topic, asked_at)
            return
        self._expect_process(self._connected)
        self.routes_read += 1
        self._table.put(topic, route, asked_at)

    def _expect_process(self, connected: int) -> None:
        """Raise RemotingError for an answer of a server that may have been started again since that connection: its
        brokers may not have registered yet."""
        if self._connects() != connected:
            raise RemotingError(self.address, "the connection was made again")


def _reason(error: ClientError) -> str:
    """Return what happened without the address, which stands before each failure of a source."""
    if isinstance(error, RemotingError):
        return error.reason
    if isinstance(error, ResponseError):
        return f"code {error.code}: {error.remark or 'no remark'}"
    return str(error)


def _now() -> float:
    return asyncio.get_running_loop().time()
