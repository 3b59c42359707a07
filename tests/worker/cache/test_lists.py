"""Lists: made once for all that ask, kept while they are true, and built without holding the loop."""

import asyncio
import time
from collections.abc import Callable
from math import inf
from statistics import median

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.drivers import run
from registry.keys import Keys
from registry.plans import Origin
from registry.repair.walk import Walk
from rocketmq_remoting.command import Command
from rocketmq_remoting.topic_list import decode_topic_list
from testbed.eventually import eventually_async
from tests.worker.scene import Broker, Scene, asynchronous, serving
from worker.cache.list_filling import AT_ONCE
from worker.cache.lists import ListCache, ListKey, Made
from worker.counters import Counters
from worker.reply import Depends, Reply

Damage = Callable[[redis_py.Redis], object]
KEYS = Keys("default")
ALL, OF_C1 = ListKey(206, None), ListKey(224, "c1")
LIST = Reply(body=b"a list", depends=Depends())
TOPICS = 20_000
HELD = 0.2


def test_a_list_is_kept_until_what_it_is_made_of_changes() -> None:
    lists = ListCache(1 << 20, Counters())
    lists.end(lists.begin(ALL), LIST)
    lists.changed(Made.BROKERS, Made.KV, Made.OPTIONS)
    assert lists.get(ALL) is LIST
    lists.changed(Made.TOPICS)
    assert lists.get(ALL) is None


def test_a_list_that_changes_while_it_is_read_is_neither_kept_nor_waited_for() -> None:
    lists = ListCache(1 << 20, Counters())
    fill = lists.begin(ALL)
    lists.changed(Made.TOPICS)
    assert lists.fill_under_way(ALL) is fill  # nothing is read yet
    lists.read(fill)
    assert lists.fill_under_way(ALL) is fill
    lists.changed(Made.TOPICS)
    assert lists.fill_under_way(ALL) is None
    later = lists.begin(ALL)
    lists.read(later)
    lists.end(fill, LIST)
    assert (lists.fill_under_way(ALL), lists.get(ALL)) == (later, None)
    lists.end(later, LIST)
    assert lists.get(ALL) is LIST


def test_what_must_not_be_kept_is_not() -> None:
    lists = ListCache(1 << 20, Counters())
    lists.end(lists.begin(ALL), Reply(body=b"a list"))
    lists.end(lists.begin(OF_C1), Reply(body=bytes(1 << 20), depends=Depends()))  # too long
    assert (lists.get(ALL), lists.get(OF_C1)) == (None, None)


async def all_topics(scene: Scene) -> tuple[str, ...]:
    return decode_topic_list((await scene.ask(206)).body).topic_list


@asynchronous
async def test_many_requests_are_one_reading(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async with serving(store.url) as scene:
        await scene.register(Broker())
        peers = [scene.connect() for _ in range(50)]
        before = redis.info("commandstats")["cmdstat_sscan"]["calls"] if await all_topics(scene) else 0
        await scene.register(Broker("b2", "127.0.0.8:1"), Broker().body(TC=6, TD=6))
        for peer in peers:
            scene.send(206, peer=peer)
        bodies = [(await asyncio.wait_for(peer.sent.get(), 30)).body for peer in peers]
        assert {decode_topic_list(body).topic_list for body in bodies} == {("TA", "TB", "TC", "TD")}
        assert redis.info("commandstats")["cmdstat_sscan"]["calls"] == before + 1
        assert len(await all_topics(scene)) == 4
        assert redis.info("commandstats")["cmdstat_sscan"]["calls"] == before + 1


@asynchronous
async def test_few_lists_are_read_at_once(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async with serving(store.url) as scene:
        redis.client_pause(300)
        peers = [scene.connect() for _ in range(10)]
        for number, peer in enumerate(peers):
            scene.send(224, peer=peer, cluster=f"c{number}")
        await asyncio.sleep(0)
        assert scene.service.parts.driver.waiting in (AT_ONCE, AT_ONCE + 1)  # the worker's tick is one too
        assert scene.service.parts.admission.lists.total == len(peers)
        for peer in peers:
            assert (await asyncio.wait_for(peer.sent.get(), 30)).code == 0
        assert scene.service.parts.admission.waiting == 0


@asynchronous
async def test_all_topics_are_not_kept_while_a_clean_up_is_pending(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    """It removes topics without an event."""
    async with serving(store.url) as scene:
        await scene.register(Broker())
        redis.hset(KEYS.deferred, "clean:gone", "1")
        assert await all_topics(scene) == ("TA", "TB")
        redis.srem(KEYS.topics, "TA")
        assert await all_topics(scene) == ("TB",)
        redis.hdel(KEYS.deferred, "clean:gone")
        assert await all_topics(scene) == ("TB",)
        redis.sadd(KEYS.topics, "TC")
        assert await all_topics(scene) == ("TB",)  # kept


def names_of(command: Command) -> set[str]:
    return set(decode_topic_list(command.body).topic_list)


A_B, ALL_FOUR = {"TA", "TB"}, {"TA", "TB", "TC", "TD"}
DAMAGES: list[tuple[Damage, int, dict[str, str], set[str], set[str]]] = [
    (lambda store: store.delete(KEYS.topics), 206, {}, set(), ALL_FOUR),
    (lambda store: store.srem(KEYS.topics, "TC", "TD"), 206, {}, A_B, ALL_FOUR),
    (lambda store: store.sadd(KEYS.topics, "T9"), 206, {}, {*ALL_FOUR, "T9"}, ALL_FOUR),
    (
        lambda store: (store.sadd(KEYS.topics, "T9"), store.hset(KEYS.route("T9"), "b9", "7,8,8,6,0")),
        206,
        {},
        {*ALL_FOUR, "T9"},
        ALL_FOUR,
    ),
    (lambda store: store.srem(KEYS.cluster("c1"), "b2"), 224, {"cluster": "c1"}, A_B, ALL_FOUR),
    (
        lambda store: store.hdel(KEYS.broker("b2"), "addr:0"),
        304,
        {},
        {"c1", "broker-a"},
        {"c1", "broker-a", "b2"},
    ),
]
"""Damage, a list with its arguments, what it has then, and after the repair."""


@pytest.mark.parametrize(
    ("damage", "code", "ext", "wrong", "right"),
    DAMAGES,
    ids=["all topics", "topics", "a topic too many", "a row too many", "a cluster", "a member"],
)
@asynchronous
async def test_a_list_that_was_kept_while_tables_were_damaged_is_right_after_the_repair(
    store: EmbeddedStore,
    redis: redis_py.Redis,
    damage: Damage,
    code: int,
    ext: dict[str, str],
    wrong: set[str],
    right: set[str],
) -> None:
    async with serving(store.url) as scene:
        await scene.register(Broker())
        await scene.register(Broker("b2", "127.0.0.8:1"), Broker().body(TC=6, TD=6))
        damage(redis)
        for _ in range(2):
            assert names_of(await scene.ask(code, ext=ext)) == wrong
        assert scene.service.parts.counters.list_hits == 1
        walk = Walk(KEYS, Origin("repair-1", "job:repair"), "w", timeout_ms=120_000, rows_per_s=inf)
        assert run(walk.run(), redis).total

        async def is_right() -> bool:
            return names_of(await scene.ask(code, ext=ext)) == right

        await eventually_async(is_right)


@asynchronous
async def test_errors_and_empty_lists_are_not_kept_and_oneway_requests_not_answered(
    store: EmbeddedStore,
) -> None:
    async with serving(store.url) as scene:
        counters = scene.service.parts.counters
        for _ in range(2):
            assert (await scene.ask(224, cluster="none")).body == b'{"topicList":[]}'
            assert (await scene.ask(219, namespace="none")).code == 22
        assert (counters.list_fills, counters.list_hits) == (4, 0)
        scene.send(206, flag=2)
        assert (await scene.ask(319)).code == 0
        assert (await scene.ask(319)).code == 0
        assert (counters.list_fills, counters.list_hits) == (5, 1)
        assert scene.service.parts.admission.waiting == 0


@asynchronous
async def test_a_list_is_asked_of_the_store_while_its_events_are_not_followed(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url) as scene:
        await scene.register(Broker())
        assert await all_topics(scene) == ("TA", "TB")
        scene.service.parts.follower._following.clear()
        redis.sadd(KEYS.topics, "TC")
        assert await all_topics(scene) == ("TA", "TB", "TC")
        scene.service.parts.follower._following.set()
        assert await all_topics(scene) == ("TA", "TB")  # what was read meanwhile is not kept


@pytest.mark.parametrize(
    ("code", "ext"),
    [(206, {}), (224, {"cluster": "c1"}), (311, {})],
    ids=["206", "224", "311"],
)
@asynchronous
async def test_a_long_list_is_built_without_holding_the_loop(
    store: EmbeddedStore, redis: redis_py.Redis, code: int, ext: dict[str, str]
) -> None:
    """A table of KV (219) is read at once, and kept small by its limits."""
    names = [f"Topic-{number:06d}-in-a-long-list" for number in range(TOPICS)]
    held: list[float] = []
    while len(held) < 3 and min(held, default=inf) >= HELD:
        redis.flushall()
        async with serving(store.url) as scene:
            await scene.register(Broker())
            redis.sadd(KEYS.topics, *names)
            redis.hset(KEYS.topics_of("broker-a"), mapping=dict.fromkeys(names, "1,8,8,6,1"))
            held.append(await longest_hold(scene, code, ext))
    assert min(held) < HELD, held


async def longest_hold(scene: Scene, code: int, ext: dict[str, str]) -> float:
    """Return the longest time for which the answer kept the loop, as a part of all its work.

    Both in processor time of this thread, so that it is the same on a slower machine, and without idle rounds."""
    rounds: list[float] = []
    over = False

    async def iterate() -> None:
        while not over:
            before = time.thread_time()
            await asyncio.sleep(0)
            rounds.append(time.thread_time() - before)

    iterations = asyncio.create_task(iterate())
    await eventually_async(lambda: bool(rounds))
    rounds.clear()
    reply = await scene.ask(code, b"", ext)
    over = True
    await iterations
    assert len(reply.body) > TOPICS * 30
    return max(rounds) / (sum(rounds) - len(rounds) * median(rounds))
