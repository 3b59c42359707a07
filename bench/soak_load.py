"""The load of the soak: brokers, clients and administrators of every kind at once, each at its own rate.

All of it runs on one event loop. Lookups are open-loop: each is due at a fixed time, whatever became of the one
before, and its latency counts from when it was due.
"""

import asyncio
import itertools
import random
import time
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import cast

from bench.workloads import address
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command, SerializeType, encode
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.registration import RegisterBrokerBody, body_crc32, encode_register_broker_body
from rocketmq_remoting.route import QueueData, TopicRouteData, encode_route
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.version import CURRENT

CLUSTER = "soak"
TOPICS = tuple(f"soak_topic_{number:03d}" for number in range(40))
MISSING = tuple(f"soak_missing_{number}" for number in range(5))
ON_THE_SIDE = "soak_on_the_side"  # set and deleted by administrators only
BROKERS, PASSING = 50, 10
LOOKUP_CONNECTIONS = 50
ANSWER_S = 10.0
FOUND_OR_NOT = frozenset({ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST})
HTTP_PATHS = ("/v1/brokers", f"/v1/routes/{TOPICS[0]}", f"/v1/routes/{MISSING[0]}", "/v1/topics")


class Tally:
    """Counts of requests and of wrong replies, and latencies (s) of lookups."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.latencies_s = array("f")

    def judge(self, what: str, code: int, allowed: Iterable[int] = (ResponseCode.SUCCESS,)) -> None:
        self.asked[what] += 1
        if code not in allowed:
            self.wrong[f"{what}: {code}"] += 1


class Link(asyncio.Protocol):
    """One connection; replies are matched to requests by opaque. Requests of the server (905) are ignored."""

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._opaques = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Command]] = {}
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not derived from it

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.next_command()) is not None:
            future = self._waiting.pop(reply.opaque or 0, None)
            if future is not None and not future.done():
                future.set_result(reply)

    def connection_lost(self, error: Exception | None) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionResetError("closed by the server"))

    def send(self, code: RequestCode, ext: dict[str, str], body: bytes = b"") -> asyncio.Future[Command]:
        """Send a request and return a future of its reply."""
        assert self._transport is not None
        opaque = next(self._opaques)
        future = self._waiting[opaque] = asyncio.get_running_loop().create_future()
        command = Command(
            int(code), opaque, version=CURRENT, ext=ext, body=body, serialize_type=SerializeType.ROCKETMQ
        )
        self._transport.write(encode(command))
        return future

    async def ask(self, code: RequestCode, ext: dict[str, str], body: bytes = b"") -> Command:
        return await asyncio.wait_for(self.send(code, ext, body), ANSWER_S)

    def close(self, *, abruptly: bool = False) -> None:
        if self._transport is not None:
            (self._transport.abort if abruptly else self._transport.close)()


class Broker:
    """One broker with its table; the data version moves when the table does."""

    def __init__(self, number: int, topics: Iterable[str]) -> None:
        self.identity = {
            "brokerName": f"soak-{number:03d}",
            "brokerAddr": address(number),
            "clusterName": CLUSTER,
            "brokerId": "0",
        }
        self.queues = dict.fromkeys(topics, 8)
        self.version = 1
        self._stamps = itertools.count(1)

    def change(self, rng: random.Random) -> None:
        """Change the queue numbers of one topic."""
        topic = rng.choice(sorted(self.queues))
        self.queues[topic] = 24 - self.queues[topic]
        self.version += 1

    def data_version(self) -> DataVersion:
        return DataVersion(0, 1_700_000_000_000, self.version)

    def registration(self) -> tuple[dict[str, str], bytes]:
        """Return header fields and body of 103 as 5.x sends it: mappingDataVersion moves each time."""
        body = RegisterBrokerBody(
            self.data_version(),
            {topic: TopicConfig(topic, count, count) for topic, count in self.queues.items()},
            mapping_data_version=DataVersion(0, 1_700_000_000_000 + next(self._stamps), 0),
        )
        raw = encode_register_broker_body(body, version=CURRENT, compressed=False)
        more = {"enableActingMaster": "false", "compressed": "false", "bodyCrc32": str(body_crc32(raw))}
        return self.identity | more, raw


class Load:
    """The whole load against 127.0.0.1; `run` goes on until it is cancelled. Rates are per second."""

    def __init__(self, port: int, http_port: int, *, lookups: float, clients: float, seed: int) -> None:
        self.tally = Tally()
        self._port = port
        self._http_port = http_port
        self._lookups_every_s = 1 / lookups
        self._clients_every_s = 1 / clients
        self._random = random.Random(seed)
        self._tasks: set[asyncio.Task[None]] = set()

    async def fill_stream(self, entries: int) -> None:
        """Write at least so many entries to the stream, so that trimming keeps it level from the start.

        They are of the kind that the load goes on to write: each registration of a changed table writes two."""
        brokers = [(Broker(number, self._table()), await self._connect()) for number in range(BROKERS)]
        for _ in range(entries // (2 * BROKERS) + 1):
            replies = [
                link.ask(RequestCode.REGISTER_BROKER, *broker.registration()) for broker, link in brokers
            ]
            for reply in await asyncio.gather(*replies):
                self.tally.judge("103", reply.code)
            for broker, _ in brokers:
                broker.change(self._random)
        for _, link in brokers:
            link.close()

    async def run(self) -> None:
        parts: list[Awaitable[None]] = [
            self._lookups(),
            self._paced("client", self._clients_every_s, self._client),
            self._one_by_one("administrator", 0.2, self._administrator()),
            self._one_by_one("http", 0.5, self._http()),
        ]
        parts += [self._steady(Broker(number, self._table())) for number in range(BROKERS)]
        parts += [self._passing(Broker(BROKERS + number, self._table())) for number in range(PASSING)]
        await asyncio.gather(*parts)

    def _table(self) -> list[str]:
        return self._random.sample(TOPICS, 10)

    async def _connect(self) -> Link:
        _, link = await asyncio.get_running_loop().create_connection(Link, "127.0.0.1", self._port)
        return link

    async def _paced(self, what: str, every_s: float, action: Callable[[], Awaitable[None]]) -> None:
        """Begin an `action` each `every_s` seconds, whether the previous one is done or not."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            task = loop.create_task(self._guarded(what, action))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            due += every_s
            await asyncio.sleep(due - loop.time())

    async def _one_by_one(self, what: str, pause_s: float, action: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(pause_s)
            await self._guarded(what, action)

    async def _guarded(self, what: str, action: Callable[[], Awaitable[None]]) -> None:
        try:
            await action()
        except (OSError, TimeoutError) as error:
            self.tally.wrong[f"{what}: {error!r}"] += 1

    async def _lookups(self) -> None:
        links = itertools.cycle([await self._connect() for _ in range(LOOKUP_CONNECTIONS)])
        topics = itertools.cycle((*TOPICS, *MISSING))
        due = time.monotonic()  # uvloop's own clock stands still within an iteration of the loop
        while True:
            while due <= time.monotonic():
                reply = next(links).send(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": next(topics)})
                reply.add_done_callback(self._latency_since(due))
                due += self._lookups_every_s
            await asyncio.sleep(due - time.monotonic())

    def _latency_since(self, due: float) -> Callable[[asyncio.Future[Command]], None]:
        def count_reply(reply: asyncio.Future[Command]) -> None:
            if reply.cancelled():
                return
            if error := reply.exception():
                self.tally.wrong[f"105: {error!r}"] += 1
                return
            self.tally.latencies_s.append(time.monotonic() - due)
            self.tally.judge("105", reply.result().code, FOUND_OR_NOT)

        return count_reply

    async def _steady(self, broker: Broker) -> None:
        """Register each second, send heartbeats in between, change the table every tenth time."""
        await asyncio.sleep(self._random.random())
        link = await self._connect()
        while True:
            await self._guarded("broker", lambda: self._round(link, broker))
            if self._random.random() < 0.1:
                broker.change(self._random)

    async def _round(self, link: Link, broker: Broker) -> None:
        reply = await link.ask(RequestCode.REGISTER_BROKER, *broker.registration())
        self.tally.judge("103", reply.code)
        await asyncio.sleep(0.4)
        reply = await link.ask(RequestCode.BROKER_HEARTBEAT, broker.identity)
        self.tally.judge("904", reply.code)
        await asyncio.sleep(0.4)
        version = broker.data_version().encode()
        reply = await link.ask(RequestCode.QUERY_DATA_VERSION, broker.identity, version)
        self.tally.judge("322", reply.code)
        await asyncio.sleep(0.2)

    async def _passing(self, broker: Broker) -> None:
        """Register, stay for a few seconds, and leave: half of the times by 104, half by closing the connection."""
        while True:
            await asyncio.sleep(self._random.random() * 2)
            await self._guarded("passing broker", lambda: self._visit(broker))

    async def _visit(self, broker: Broker) -> None:
        link = await self._connect()
        for _ in range(self._random.randint(1, 4)):
            await self._round(link, broker)
        orderly = self._random.random() < 0.5
        if orderly:
            self.tally.judge("104", (await link.ask(RequestCode.UNREGISTER_BROKER, broker.identity)).code)
        link.close(abruptly=not orderly)

    async def _client(self) -> None:
        """Connect, look up a few routes, and close."""
        link = await self._connect()
        for topic in self._random.sample((*TOPICS, *MISSING), 3):
            reply = await link.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
            self.tally.judge("105 of a new client", reply.code, FOUND_OR_NOT)
        link.close(abruptly=self._random.random() < 0.25)

    def _administrator(self) -> Callable[[], Awaitable[None]]:
        """The requests of mqadmin one after the other, each over a connection of its own, as mqadmin sends them."""
        name = "soak-000"
        kv = {"namespace": "soak", "key": "k"}
        requests = itertools.cycle(
            (
                (RequestCode.GET_BROKER_CLUSTER_INFO, {}, b""),
                (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {}, b""),
                (RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": CLUSTER}, b""),
                (RequestCode.GET_BROKER_MEMBER_GROUP, {"clusterName": CLUSTER, "brokerName": name}, b""),
                (RequestCode.GET_NAMESRV_CONFIG, {}, b""),
                (RequestCode.PUT_KV_CONFIG, kv | {"value": "v"}, b""),
                (RequestCode.GET_KV_CONFIG, kv, b""),
                (RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "soak"}, b""),
                (RequestCode.DELETE_KV_CONFIG, kv, b""),
                (RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": name}, b""),
                (RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": name}, b""),
                _topic_set(name, 4),
                (RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": ON_THE_SIDE}, b""),
                (RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, {}, b""),
                (RequestCode.GET_UNIT_TOPIC_LIST, {}, b""),
            )
        )

        async def action() -> None:
            request = next(requests)
            link = await self._connect()
            self.tally.judge(str(int(request[0])), (await link.ask(*request)).code)
            link.close()

        return action

    def _http(self) -> Callable[[], Awaitable[None]]:
        paths = itertools.cycle(HTTP_PATHS)

        async def action() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._http_port)
            head = f"GET {next(paths)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            writer.write(head.encode())
            reply = await asyncio.wait_for(reader.read(), ANSWER_S)
            writer.close()
            self.tally.judge("HTTP", int(reply.split(b" ", 2)[1]) if reply else 0, (200, 404))

        return action


def _topic_set(name: str, queues: int) -> tuple[RequestCode, dict[str, str], bytes]:
    """Return the request 217 that gives `ON_THE_SIDE` so many queues on a broker."""
    route = TopicRouteData((), (QueueData(name, queues, queues, 6, 0),))
    body = encode_route(route, Dialect.STANDARD)
    return RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": ON_THE_SIDE}, body
