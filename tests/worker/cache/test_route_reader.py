"""Routes that are asked for at once are read in few calls, and are what each would be if it were asked for alone."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
import redis as redis_py
import redis.asyncio as redis_asyncio
from redis.exceptions import ResponseError

from registry.drivers import AsyncDriver
from registry.keys import ORDER_TOPIC_CONFIG, Keys
from registry.kv import put
from registry.options.catalogue import Options
from registry.routes import RoutesRead, StoredRoute, read_route
from tests.registry.brokers import mapping_info, origin
from tests.registry.namespace import Namespace
from tests.registry.watched import Watched
from worker.cache.reader import LONG_MOST, TOPICS_MOST, RouteReader
from worker.cache.routes import Fill
from worker.cache.views import PLAIN_LEGACY, PLAIN_STANDARD, AskedView
from worker.handlers.routes import get_route_info_by_topic

LONG_S = 10.0
WORN_OUT = "its waiting client fails"
ALIKE = tuple(f"alike-{number}" for number in range(300))


@pytest.fixture
def ns(redis: redis_py.Redis) -> Namespace:
    return Namespace(redis)


def at_once(ns: Namespace, store: redis_asyncio.Redis, topics: Sequence[str]) -> list[Any]:
    """Their routes as a worker reads them, or the errors."""
    routes: dict[Fill, Any] = {}

    async def read() -> list[Any]:
        driver = AsyncDriver(store)
        fills, done = [Fill((topic, PLAIN_STANDARD)) for topic in topics], asyncio.Event()

        def taken(fill: Fill, read: RoutesRead | Exception, at: int) -> None:
            assert fill not in routes
            routes[fill] = read if isinstance(read, Exception) else read.route(fill.key[0], at)
            if len(routes) == len(fills):
                done.set()
            assert fill.key[0] != WORN_OUT

        reader = RouteReader(driver, ns.keys, taken)
        for fill in fills:
            reader.ask(fill)
        try:
            async with asyncio.timeout(LONG_S):
                await done.wait()
        finally:
            await driver.close()
        return [routes[fill] for fill in fills]

    return asyncio.run(read())


def alone(ns: Namespace, topic: str) -> StoredRoute:
    return ns.run(read_route(ns.keys, topic))


def calls(redis: redis_py.Redis) -> int:
    """Of scripts so far."""
    stats: Any = redis.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval"))


def test_a_topic_of_more_brokers_than_a_script_reads(ns: Namespace, async_redis: redis_asyncio.Redis) -> None:
    """Also of a topic behind others, whose brokers have many members."""
    for number in range(30):
        for member in range(5):
            ns.register(f"few-{number}", member, ("T1", "other"), filters=(f"f:{member}",))
    for number in range(420):
        ns.register(f"many-{number}", 0, ("T2", "other"))
    found = at_once(ns, async_redis, ["none", "T1", "T2", "T1"])
    assert found == [alone(ns, topic) for topic in ("none", "T1", "T2", "T1")]
    assert [len(route.brokers) for route in found] == [0, 30, 420, 30]
    assert {len(broker.data.broker_addrs) for broker in found[1].brokers} == {5}


def test_few_long_routes_are_read_at_once(
    ns: Namespace, async_redis: redis_asyncio.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    limiters = []

    def limiter(places: int) -> Watched:
        limiters.append(Watched(places))
        return limiters[-1]

    monkeypatch.setattr("worker.cache.reader.Limiter", limiter)
    topics = [f"T{number}" for number in range(6)]
    for number in range(420):
        ns.register(f"many-{number}", 0, topics)
    assert at_once(ns, async_redis, topics) == [alone(ns, topic) for topic in topics]
    assert [(each.most, each.inside) for each in limiters] == [(LONG_MOST, 0)]


def test_topics_that_are_static_on_many_brokers(ns: Namespace, async_redis: redis_asyncio.Redis) -> None:
    """Their mapping info is read by itself, and that of a topic on few brokers by the script."""
    for number in range(70):
        infos = [
            mapping_info(topic, f"b{number}") for topic in ("T1", "T2", *("few" for _ in range(number < 2)))
        ]
        ns.register(f"b{number}", 0, ("T1", "T2", "few"), mappings=infos)
    topics = ["T1", "none", "few", "T2", "T1"]
    found = at_once(ns, async_redis, topics)
    assert found == [alone(ns, topic) for topic in topics]
    assert [sum(one.mapping is not None for one in route.brokers) for route in found] == [70, 0, 2, 70, 70]


@pytest.fixture
def many(ns: Namespace) -> Namespace:
    """Every kind of route."""
    ns.register("b1", 0, (*ALIKE, "static", "ordered", "gone"), zone="z", mappings=[mapping_info("static")])
    ns.register("b1", 1, (), filters=("f:1", "f:2"))
    ns.register("b2", 0, {**dict.fromkeys(ALIKE, "4,4,6,0"), "rmq_sys_SYNC_BROKER_MEMBER_b2": "1,1,4,0"})
    ns.register("b3", 1, {"alike-7": "8,8,4,0", "rmq_sys_SYNC_BROKER_MEMBER_b2": "1,1,4,0"}, acting=True)
    ns.register("b4", 0, ("alike-8", "lapsed"))
    ns.register("b5", 0, ("gone", "alike-9"))
    ns.unregister("b5")
    ns.lapse("b4")
    ns.run(put(ns.keys, ORDER_TOPIC_CONFIG, "ordered", "b1:8", origin()))
    return ns


def test_each_is_as_if_it_were_asked_for_alone(many: Namespace, async_redis: redis_asyncio.Redis) -> None:
    topics = [*ALIKE, "static", "ordered", "gone", "lapsed", "rmq_sys_SYNC_BROKER_MEMBER_b2", "no-such-topic"]
    routes = at_once(many, async_redis, topics)
    assert routes == [alone(many, topic) for topic in topics]
    by_topic = {one.topic: one for one in routes}
    assert [one.data.broker_name for one in by_topic["alike-7"].brokers] == ["b1", "b2", "b3"]
    assert by_topic["lapsed"].names == {"b4"}
    assert by_topic["no-such-topic"].names == set()
    assert by_topic["ordered"].order_conf == "b1:8"
    assert by_topic["static"].brokers[0].mapping == mapping_info("static")


def test_they_take_few_calls(
    many: Namespace, redis: redis_py.Redis, async_redis: redis_asyncio.Redis
) -> None:
    before = calls(redis)
    at_once(many, async_redis, ALIKE)
    assert calls(redis) - before <= 6


def test_a_call_takes_only_so_many(
    ns: Namespace, redis: redis_py.Redis, async_redis: redis_asyncio.Redis
) -> None:
    for number in range(100):
        ns.register(f"broker-{number}", 0, ALIKE[:60])
    before = calls(redis)
    found = at_once(ns, async_redis, ALIKE[:60])
    assert calls(redis) - before > 2
    assert found == [alone(ns, topic) for topic in ALIKE[:60]]


def test_a_call_takes_few_long_names(
    ns: Namespace, redis: redis_py.Redis, async_redis: redis_asyncio.Redis
) -> None:
    """Names that no topic has, and any client may ask for."""
    ns.register("b1", 0, ("T1", "T2"))
    topics = [*(str(number).ljust(30_000, "主") for number in range(10)), "T1", "T2"]
    before = calls(redis)
    found = at_once(ns, async_redis, topics)
    assert calls(redis) - before > 3
    assert [len(route.brokers) for route in found] == [0] * 10 + [1, 1]


def test_one_that_cannot_be_read_is_no_harm_to_the_others(
    many: Namespace, redis: redis_py.Redis, async_redis: redis_asyncio.Redis
) -> None:
    redis.set(many.keys.route("broken"), "no hash")
    first, broken, last = at_once(many, async_redis, ["alike-1", "broken", "alike-2"])
    assert (first, last) == (alone(many, "alike-1"), alone(many, "alike-2"))
    assert isinstance(broken, ResponseError)
    redis.delete(many.keys.route("broken"))


def test_one_that_cannot_be_used_is_no_harm_to_the_others(
    many: Namespace, async_redis: redis_asyncio.Redis
) -> None:
    first, _, last = at_once(many, async_redis, ["alike-1", WORN_OUT, "alike-2"])
    assert (first, last) == (alone(many, "alike-1"), alone(many, "alike-2"))


def test_a_store_that_is_away_fails_those_in_line_too() -> None:
    class Away:
        def __init__(self) -> None:
            self.calls: list[Callable[[Any], None]] = []

        def ask(self, _: object, done: Callable[[Any], None]) -> None:
            self.calls.append(done)

    async def read() -> None:
        away, failed = Away(), list[Fill]()
        reader = RouteReader(cast(AsyncDriver, away), Keys(), lambda fill, *_: failed.append(fill))
        fills = [Fill((topic, PLAIN_STANDARD)) for topic in ALIKE]
        for fill in fills:
            reader.ask(fill)
        await asyncio.sleep(0)
        first, second = away.calls
        first(redis_py.TimeoutError())
        assert len(failed) == len(fills) - TOPICS_MOST
        second(redis_py.TimeoutError())
        assert set(failed) == set(fills)

    asyncio.run(read())


@pytest.mark.parametrize(
    "topic",
    [
        "alike-1",
        "alike-7",
        "ordered",
        "no-such-topic",
        "rmq_sys_SYNC_BROKER_MEMBER_b2",
        "rmq_sys_SYNC_BROKER_MEMBER_b3",
    ],
)
def test_an_answer_that_another_topic_got_is_the_right_one(
    many: Namespace, async_redis: redis_asyncio.Redis, topic: str
) -> None:
    many.register(
        "b3", 1, {"acts": "1,1,4,0", "rmq_sys_SYNC_BROKER_MEMBER_b3": "1,1,4,0"}, acting=True, version=8
    )
    others = [*ALIKE, "gone", "acts"]
    asked = [PLAIN_STANDARD, PLAIN_LEGACY, AskedView(True, True, None), AskedView(True, False, "z9")]
    options = [Options(), Options(support_acting_master=True), Options(order_message_enable=True)]
    *found, route = at_once(many, async_redis, [*others, topic])
    for view, live in itertools.product(asked, options):
        for other in found:
            get_route_info_by_topic(other, view, live)
        assert get_route_info_by_topic(route, view, live) == get_route_info_by_topic(
            alone(many, topic), view, live
        )


def test_names_with_any_character_are_distinguished(ns: Namespace, async_redis: redis_asyncio.Redis) -> None:
    """Whatever a name holds, two hashes are not taken for one because their texts, joined, look alike."""
    texts = "1,8,8,6,0", "1,4,4,6,0"
    for mark in ("\n", "\0", "\x01", ",", "\xff", "\u00ff"):
        ns.store.hset(ns.keys.route("two"), mapping={"a": texts[0], "b": texts[1]})
        ns.store.hset(ns.keys.route("one"), mapping={f"a{mark}{texts[0]}{mark}b": texts[1]})
        one, two = at_once(ns, async_redis, ["one", "two"])
        assert (two.names, one.names) == ({"a", "b"}, {f"a{mark}{texts[0]}{mark}b"})
        ns.store.delete(ns.keys.route("one"), ns.keys.route("two"))


def test_routes_that_are_alike_share_what_they_are_made_of(
    many: Namespace, async_redis: redis_asyncio.Redis
) -> None:
    first, second = at_once(many, async_redis, ["alike-1", "alike-2"])
    assert first.brokers is second.brokers
    options = Options()
    made = get_route_info_by_topic(first, PLAIN_LEGACY, options)
    assert get_route_info_by_topic(second, PLAIN_LEGACY, options) is made


def test_routes_that_are_read_one_after_the_other_share_names_and_ids(
    many: Namespace, async_redis: redis_asyncio.Redis
) -> None:
    """Each broker of a cached route would take some 400 bytes beside its reply."""
    (first,), (second,) = (at_once(many, async_redis, [topic]) for topic in ("alike-1", "alike-2"))
    for name, same in zip(sorted(first.listed), sorted(second.listed), strict=True):
        assert name is same
        assert first.listed[name] is second.listed[same]
    assert all(one is other for one, other in zip(sorted(first.names), sorted(second.names), strict=True))
