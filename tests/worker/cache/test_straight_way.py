"""Registrations that change topics, over the wire: those on the straight way and those that all go the long one leave
the same answers, tables and entries."""

import asyncio
import json
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis as redis_py
from msgspec.structs import replace

from metrics import catalogue as metrics
from metrics.samples import Sample
from mqnamesrv.store import EmbeddedStore
from registry.keys import Keys
from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody, body_crc32, encode_register_broker_body
from rocketmq_remoting.remoting_command import SerializeType
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.version import CURRENT
from testbed.delayed_reads import VARIABLE
from testbed.eventually import PATIENCE_S, eventually_async
from tests.registry.two_ways.contents import Entries, contents
from tests.worker.scene import FakePeer, Scene, asynchronous
from worker import dispatch
from worker.cache.cached_registrations import WAITING_MOST
from worker.reply import Handled, Request
from worker.service import Service

REGISTER = int(RequestCode.REGISTER_BROKER)
STEPS, LONG_WAY_MOST = (40, 0.9) if VARIABLE in os.environ else (400, 0.6)
"""Where followers lag each step takes a second. Of few registrations many are the first of their kind."""
OF_SERVICES = ("workers", "settings", "access", "tasks")
"""Keys that services write at times of their own."""
ACCEPTED = ("changed", "unchanged")
COUNTED = (metrics.REQUESTS, metrics.REGISTRATIONS, metrics.HEARTBEATS)
Tables = dict[str, int]
"""How many queues each topic has."""


class Broker:
    """A broker of 5.x and its connection; `topics` are what it registers."""

    def __init__(self, number: int, kind: SerializeType) -> None:
        self.number, self.kind = number, kind
        self.topics: Tables = {f"a-topic-with-a-usual-name-{i:02}": 8 for i in range(8)}
        self.ha = f"127.0.0.{number}:10912"
        self.filters: tuple[str, ...] = ()
        self.version = 0
        self.sent = 0

    @property
    def identity(self) -> dict[str, str]:
        return {
            "brokerName": f"broker-{self.number}",
            "brokerAddr": f"127.0.0.{self.number}:10911",
            "clusterName": "c",
            "brokerId": "0",
        }

    def registration(self, topics: Tables | None = None, *, crc: int | None = None) -> Command:
        """Return the next one, of all its topics or of these."""
        self.sent += 1
        table = {name: TopicConfig(name, queues, queues) for name, queues in (topics or self.topics).items()}
        body = RegisterBrokerBody(
            DataVersion(0, 1_700_000_000_000, self.version),
            table,
            filter_servers=self.filters,
            mapping_data_version=DataVersion(0, 1_700_000_000_000 + self.sent, 0),
        )
        raw = encode_register_broker_body(body, version=CURRENT, compressed=False)
        ext = self.identity | {
            "haServerAddr": self.ha,
            "enableActingMaster": "false",
            "compressed": "false",
            "bodyCrc32": str(body_crc32(raw) if crc is None else crc),
        }
        return Command(REGISTER, self.sent, 0, CURRENT, 0, None, ext, raw, self.kind)


class Side:
    """A service in a namespace of its own."""

    def __init__(self, service: Service, store: Any, namespace: str) -> None:
        self.scene = Scene(service)
        self.keys = Keys(namespace)
        self._store = store
        self._entries = Entries(store, self.keys)
        self.peers: dict[int, FakePeer] = {}

    def peer(self, number: int) -> FakePeer:
        if number not in self.peers:
            self.peers[number] = self.scene.connect(f"127.0.0.{number}:40000")
        return self.peers[number]

    async def ask(self, number: int, *commands: Command) -> list[tuple[Any, ...]]:
        """The answers to requests over one connection, none of which waits for the one before."""
        peer = self.peer(number)
        for command in commands:
            peer.receive(command, self.scene.service)
        answers = [await asyncio.wait_for(peer.sent.get(), PATIENCE_S) for _ in commands]
        return sorted((one.opaque, one.code, one.remark, str(one.ext), one.body) for one in answers)

    def entries(self) -> list[dict[str, str]]:
        return [{name: text for name, text in entry.items() if name != "op"} for entry in self._entries.new()]

    def contents(self) -> dict[str, Any]:
        held = contents(self._store, self.keys, int(time.time() * 1000))
        return {name: value for name, value in held.items() if not name.startswith(OF_SERVICES)}

    def counted(self) -> Counter[tuple[str, ...]]:
        """What this side counts of its answers. A change that finds other order topics is written, then answered the
        long way, as one that changes nothing."""
        counted = Counter[tuple[str, ...]]()
        for sample in self.scene.service.parts.counters.read(0):
            if isinstance(sample, Sample) and sample.metric in COUNTED:
                labels = ["accepted" if one in ACCEPTED else one for one in sample.labels]
                counted[sample.metric.name, *labels] += int(sample.value)
        return counted


@asynccontextmanager
async def sides(
    store: EmbeddedStore, redis: redis_py.Redis, **options: Any
) -> AsyncIterator[tuple[Side, Side]]:
    """One that takes the straight way, and one that never does."""
    made = []
    for namespace in ("straight", "long"):
        service = Service(Options(redis_url=store.url, namespace=namespace, **options), "w1")
        await service.start()
        made.append(Side(service, redis, namespace))
    made[1].scene.service.parts.registrations._changes = lambda *_: None
    try:
        yield made[0], made[1]
        admissions = [side.scene.service.parts.admission for side in made]
        await eventually_async(lambda: not any(one.waiting for one in admissions))
    finally:
        for side in made:
            await side.scene.service.stop()


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many registrations went the long way, or a short cut of it, by namespace."""
    counted, handler = Counter[str](), dispatch.HANDLERS[REGISTER]

    def counting(request: Request) -> Handled:
        counted[request.options.namespace] += 1
        return handler(request)

    monkeypatch.setitem(dispatch.HANDLERS, REGISTER, counting)
    return counted


def _agree(one: Side, other: Side) -> None:
    assert one.entries() == other.entries()
    assert one.contents() == other.contents()
    assert one.counted() == other.counted()


class History:
    """Random steps of some brokers, the same on both sides."""

    def __init__(self, seed: int, both: tuple[Side, Side]) -> None:
        self.random = random.Random(seed)
        self.both = both
        self.brokers = [Broker(number, SerializeType(number % 2)) for number in range(1, 5)]

    async def ask(self, number: int, *commands: Command) -> None:
        answers = [await side.ask(number, *commands) for side in self.both]
        assert answers[0] == answers[1]

    async def step(self) -> str:
        broker = self.random.choice(self.brokers)
        name = self.random.choice(
            ["change"] * 8 + ["alone"] * 4 + ["unchanged"] * 3 + ["version"] * 2
            + ["back", "add", "leave out", "header", "crc", "order", "wipe", "delete", "restore", "leave"]
            + ["two", "long", "filters"]
        )  # fmt: skip
        await getattr(self, f"_{name.replace(' ', '_')}")(broker)
        return name

    def _altered(self, broker: Broker) -> str:
        topic = self.random.choice([*broker.topics])
        broker.topics = broker.topics | {topic: self.random.randint(1, 16)}
        broker.version += 1
        return topic

    async def _change(self, broker: Broker) -> None:
        self._altered(broker)
        await self.ask(broker.number, broker.registration())

    async def _alone(self, broker: Broker) -> None:
        topic = self._altered(broker)
        await self.ask(broker.number, broker.registration({topic: broker.topics[topic]}))

    async def _back(self, broker: Broker) -> None:
        """As a broker that was restored from a backup."""
        before = broker.topics, broker.version
        await self._change(broker)
        broker.topics, broker.version = before
        await self.ask(broker.number, broker.registration())

    async def _unchanged(self, broker: Broker) -> None:
        await self.ask(broker.number, broker.registration())

    async def _version(self, broker: Broker) -> None:
        broker.version += 1
        await self.ask(broker.number, broker.registration())

    async def _add(self, broker: Broker) -> None:
        broker.topics[f"added-{len(broker.topics)}"] = 4
        broker.version += 1
        await self.ask(broker.number, broker.registration())

    async def _leave_out(self, broker: Broker) -> None:
        if len(broker.topics) > 4:
            del broker.topics[self._altered(broker)]
        await self.ask(broker.number, broker.registration())

    async def _header(self, broker: Broker) -> None:
        broker.ha = f"127.0.0.{broker.number}:{self.random.randint(1, 9)}"
        await self._change(broker)

    async def _filters(self, broker: Broker) -> None:
        broker.filters = (f"127.0.0.{broker.number}:{self.random.randint(1, 9)}",)
        await self._change(broker)

    async def _crc(self, broker: Broker) -> None:
        self._altered(broker)
        await self.ask(broker.number, broker.registration(crc=1))

    async def _two(self, broker: Broker) -> None:
        commands = []
        for _ in range(2):
            self._altered(broker)
            commands.append(broker.registration())
        await self.ask(broker.number, *commands)

    async def _long(self, broker: Broker) -> None:
        added = {f"long-{i:03}": 4 for i in range(WAITING_MOST // 100)}
        self._altered(broker)
        await self.ask(broker.number, broker.registration(broker.topics | added))

    async def _order(self, broker: Broker) -> None:
        topic, value = self.random.choice([*broker.topics]), f"broker-{broker.number}:{self.random.random()}"
        ext = {"namespace": "ORDER_TOPIC_CONFIG", "key": topic, "value": value}
        await self.ask(9, Command(RequestCode.PUT_KV_CONFIG, 1, 0, CURRENT, ext=ext))

    async def _wipe(self, broker: Broker) -> None:
        await self._of_broker(RequestCode.WIPE_WRITE_PERM_OF_BROKER, broker)

    async def _restore(self, broker: Broker) -> None:
        await self._of_broker(RequestCode.ADD_WRITE_PERM_OF_BROKER, broker)

    async def _delete(self, broker: Broker) -> None:
        ext = {"topic": self.random.choice([*broker.topics])}
        await self.ask(9, Command(RequestCode.DELETE_TOPIC_IN_NAMESRV, 1, 0, CURRENT, ext=ext))

    async def _leave(self, broker: Broker) -> None:
        await self._of_broker(RequestCode.UNREGISTER_BROKER, broker)

    async def _of_broker(self, code: int, broker: Broker) -> None:
        await self.ask(9, Command(code, 1, 0, CURRENT, ext=broker.identity))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_both_ways_leave_the_same(
    seed: int, store: EmbeddedStore, redis: redis_py.Redis, handled: Counter[str]
) -> None:
    @asynchronous
    async def run() -> None:
        async with sides(store, redis) as both:
            history = History(seed, both)
            for number in range(STEPS):
                name = await history.step()
                try:
                    _agree(*both)
                except AssertionError as error:
                    raise AssertionError(f"step {number} of seed {seed}, {name}: {error}") from error

    run()
    assert 0 < handled["straight"] < LONG_WAY_MOST * handled["long"]


@pytest.mark.parametrize("kind", [SerializeType.JSON, SerializeType.ROCKETMQ], ids=str)
def test_changes_and_what_follows_them_are_found(
    kind: SerializeType, store: EmbeddedStore, redis: redis_py.Redis, handled: Counter[str]
) -> None:
    @asynchronous
    async def run() -> None:
        async with sides(store, redis) as (side, _):
            broker = Broker(1, kind)
            for broker.version in range(2):
                await side.ask(1, broker.registration())
            for queues in range(1, 4):
                broker.topics, broker.version = dict.fromkeys(broker.topics, queues), broker.version + 1
                for _ in range(2):
                    await side.ask(1, broker.registration())
                broker.version += 1
                await side.ask(1, broker.registration())

    run()
    assert handled == {"straight": 2}


def test_one_that_is_refused_a_living_id_takes_no_way_and_the_other_keeps_its_own(
    store: EmbeddedStore, redis: redis_py.Redis, handled: Counter[str]
) -> None:
    """identityConflicts=refuse: the same bytes are refused each time, whatever is cached of the one that lives."""

    @asynchronous
    async def run() -> None:
        async with sides(store, redis, identity_conflicts="refuse") as both:
            for side in both:
                broker, copy = Broker(1, SerializeType.JSON), Broker(1, SerializeType.JSON)
                copied = copy.registration()
                copied = replace(copied, ext=(copied.ext or {}) | {"brokerAddr": "127.0.0.2:10911"})
                for broker.version in range(6):
                    broker.topics = dict.fromkeys(broker.topics, 1 + broker.version)
                    ((_, code, *_),) = await side.ask(1, broker.registration())
                    assert code == 0
                    ((_, code, remark, *_),) = await side.ask(2, copied)
                    assert (code, "127.0.0.1:10911 of cluster 'c' lives there" in remark) == (1, True)
            _agree(*both)

    run()
    assert handled == {"straight": 8, "long": 12}  # the first two of the one that lives, and all others


def test_a_change_that_finds_other_order_topics_is_acknowledged_once_followed(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynchronous
    async def run() -> None:
        async with sides(store, redis) as both:
            for side in both:
                broker, parts = Broker(1, SerializeType.JSON), side.scene.service.parts
                for broker.version in range(2):
                    await side.ask(1, broker.registration())
                ext = {"namespace": "ORDER_TOPIC_CONFIG", "key": "t", "value": "broker-1:8"}
                await side.ask(9, Command(RequestCode.PUT_KV_CONFIG, 1, 0, CURRENT, ext=ext))
                broker.topics, broker.version = dict.fromkeys(broker.topics, 3), 2
                followed: asyncio.Queue[Any] = asyncio.Queue()
                monkeypatch.setattr(parts, "when_followed", lambda _, done, to=followed: to.put_nowait(done))
                asked = asyncio.ensure_future(side.ask(1, broker.registration()))
                acknowledge = asyncio.ensure_future(followed.get())
                await asyncio.wait((asked, acknowledge), return_when=asyncio.FIRST_COMPLETED)
                assert not asked.done()
                acknowledge.result()(True)
                await asked

    run()


def test_a_change_that_finds_other_order_topics_does_not_undo_what_follows_it(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker's caches follow it late: the broker's next registration is written by then."""

    @asynchronous
    async def run() -> None:
        async with sides(store, redis) as (side, _):
            broker, parts = Broker(1, SerializeType.JSON), side.scene.service.parts
            for broker.version in range(2):
                await side.ask(1, broker.registration())
            ext = {"namespace": "ORDER_TOPIC_CONFIG", "key": "t", "value": "broker-1:8"}
            await side.ask(9, Command(RequestCode.PUT_KV_CONFIG, 1, 0, CURRENT, ext=ext))
            side.entries()
            followed: asyncio.Queue[Any] = asyncio.Queue()
            asked, acknowledgements = [], []
            with monkeypatch.context() as patch:
                patch.setattr(parts, "when_followed", lambda _, done: followed.put_nowait(done))
                for broker.version in (2, 3):
                    broker.topics = dict.fromkeys(broker.topics, broker.version)
                    asked.append(asyncio.ensure_future(side.ask(1, broker.registration())))
                    acknowledgements.append(await asyncio.wait_for(followed.get(), PATIENCE_S))
            for acknowledge in acknowledgements:
                acknowledge(True)
            answers = sorted(answer for answers in await asyncio.gather(*asked) for answer in answers)
            assert [(code, b'"t"' in body) for _, code, _, _, body in answers] == [(0, True)] * 2
            written = [entry["dv"] for entry in side.entries() if entry["kind"] == "topics_changed"]
            assert [dv.rpartition(":")[2] for dv in written] == ["2", "3"]

    run()


def test_a_change_behind_another_one_is_handled(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    """Reading one takes longer than looking a reply up, so that a peer cannot have many read at once."""

    @asynchronous
    async def run() -> None:
        async with sides(store, redis) as (side, _):
            broker = Broker(1, SerializeType.ROCKETMQ)
            for broker.version in range(2):
                await side.ask(1, broker.registration())
            peer, frames = side.peer(1), []
            for queues in (3, 4, 5):
                broker.topics = dict.fromkeys(broker.topics, queues)
                broker.version += 1
                frames.append(encode(broker.registration()))
            cached = side.scene.service.cached_for(peer)
            assert cached is not None
            _, length, checks = cached.answers(b"".join(frames), side.scene.service.parts.clock(), 1 << 20)
            assert (length, len(checks)) == (len(frames[0]), 1)

    run()


@pytest.mark.parametrize("kind", [SerializeType.JSON, SerializeType.ROCKETMQ], ids=str)
def test_filter_servers_behind_the_topics_are_those_that_count(
    kind: SerializeType, store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    """The last of two members of one name counts, as in the body of a first registration."""

    @asynchronous
    async def run() -> None:
        async with sides(store, redis) as both:
            for side in both:
                broker = Broker(1, kind)
                member = side.keys.member("c:127.0.0.1:10911")
                for broker.version in range(2):
                    await side.ask(1, broker.registration())
                for queues, behind in enumerate(("1.1.1.1:3", "1.1.1.1:4", "", "1.1.1.1:5", "1.1.1.1:6"), 8):
                    broker.topics, broker.version = dict.fromkeys(broker.topics, queues), broker.version + 1
                    asked = broker.registration()
                    tail = b',"filterServerList":["%s"]}' % behind.encode() if behind else b"}"
                    body = asked.body[:-1] + tail
                    ext = {**(asked.ext or {}), "bodyCrc32": str(body_crc32(body))}
                    (answer,) = await side.ask(1, replace(asked, body=body, ext=ext))
                    assert answer[1] == 0
                    found = json.loads(redis.hget(member, "filters") or "[]")
                    assert found == ([behind] if behind else [])

    run()
