"""Random changes through two workers: what either answers from its cache is what the store says."""

import json
import random
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry import kv, settings
from registry.clusters import cluster_info, system_topics
from registry.drivers import run
from registry.errors import ConfigNotFound, TopicNotFound
from registry.events.checkpoint import checkpoint, request_round
from registry.keys import Keys
from registry.options.catalogue import Options, listing, overlay
from registry.plans import Origin, Plan
from registry.routes import RouteView, read_route, route_of
from registry.topics import UnitKind, all_topics, topics_of_cluster, unit_topics
from rocketmq_remoting.cluster import encode_cluster_info
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.kv_table import KVTable, encode_kv_table
from rocketmq_remoting.properties import format_properties
from rocketmq_remoting.route import encode_route
from rocketmq_remoting.topic_list import TopicList, encode_topic_list
from testbed.eventually import eventually_async
from tests.worker.scene import Broker, Scene, asynchronous, reached, serving

KEYS = Keys("default")
ACT = Origin("op", "test")
KVS = ("ORDER_TOPIC_CONFIG", "n")
NAMES, TOPICS, CLUSTERS = ("b1", "b2", "b3"), ("T1", "T2", "T3", "T4"), ("c1", "c2")
Change = Callable[[Scene, random.Random], Awaitable[Any]]


def some_broker(dice: random.Random) -> Broker:
    name, number = dice.choice(NAMES), dice.choice((0, 0, 1, 2))
    address = f"127.0.{NAMES.index(name)}.{dice.choice((1, 2, 3))}:1"
    return Broker(name, address, number, dice.choice(("c1", "c1", "c2")))


async def registers(scene: Scene, dice: random.Random) -> None:
    topics = {topic: dice.choice((2, 4, 6)) for topic in dice.sample(TOPICS, dice.randint(2, 4))}
    broker = some_broker(dice)
    ext = {
        "enableActingMaster": dice.choice(("true", "false")),
        "__ZONE_NAME": dice.choice(("z1", "z2")),
    }
    await scene.register(broker, broker.body(dice.randint(1, 3), **topics), ext)


async def registers_under_several_names(scene: Scene, dice: random.Random) -> None:
    broker = Broker(dice.choice(NAMES), "127.0.9.9:1", 3)
    said = json.loads(broker.body(dice.randint(1, 3), T1=6, T2=6))
    said["filterServerList"] = dice.sample(("f:1", "f:2"), dice.randint(0, 2))
    await scene.register(broker, json.dumps(said).encode())


async def unregisters(scene: Scene, dice: random.Random) -> None:
    await scene.ask(104, b"", some_broker(dice).ext)


async def sends_heartbeat(scene: Scene, dice: random.Random) -> None:
    await scene.ask(904, b"", some_broker(dice).ext)


async def wipes(scene: Scene, dice: random.Random) -> None:
    await scene.ask(dice.choice((205, 327)), brokerName=dice.choice(NAMES))


async def deletes(scene: Scene, dice: random.Random) -> None:
    await scene.ask(216, topic=dice.choice(TOPICS), clusterName=dice.choice(("", "c1", "c2")))


async def adds(scene: Scene, dice: random.Random) -> None:
    queues = {
        "brokerName": dice.choice(NAMES),
        "perm": 6,
        "readQueueNums": 1,
        "writeQueueNums": 1,
        "topicSysFlag": dice.randint(0, 3),
    }
    await scene.ask(217, json.dumps({"queueDatas": [queues]}).encode(), topic=dice.choice(TOPICS))


async def orders(scene: Scene, dice: random.Random) -> None:
    code = dice.choice((100, 102))
    await scene.ask(code, namespace="ORDER_TOPIC_CONFIG", key=dice.choice(TOPICS), value=str(dice.random()))


async def changes_kv(scene: Scene, dice: random.Random) -> None:
    await scene.ask(
        dice.choice((100, 100, 102)), namespace=dice.choice(KVS), key=dice.choice(TOPICS), value="1"
    )


async def configures(scene: Scene, dice: random.Random) -> None:
    option = dice.choice(("orderMessageEnable", "supportActingMaster"))
    await scene.ask(318, f"{option}={dice.choice(('true', 'false'))}".encode())


async def registers_for_a_moment(scene: Scene, dice: random.Random) -> None:
    await scene.register(some_broker(dice), ext={"heartbeatTimeoutMillis": "30"})


OTHERS: tuple[Change, ...] = (
    unregisters,
    unregisters,
    sends_heartbeat,
    wipes,
    deletes,
    adds,
    orders,
    changes_kv,
    configures,
)
CHANGES: tuple[Change, ...] = (*(registers,) * 6, *(registers_under_several_names,) * 3, *OTHERS)


def true_route(redis: redis_py.Redis, scene: Scene, topic: str, zone: str | None) -> bytes:
    options = scene.service.parts.options
    view = RouteView(zone, options.support_acting_master, options.order_message_enable)
    try:
        return encode_route(route_of(run(read_route(KEYS, topic), redis), view), Dialect.STANDARD)
    except TopicNotFound:
        return b""


def true_lists(redis: redis_py.Redis) -> Iterator[tuple[int, dict[str, str], bytes | None]]:
    """Code, fields and body of each list, None for an error."""

    def topics(code: int, plan: Plan[tuple[str, ...]], **ext: str) -> tuple[int, dict[str, str], bytes]:
        return code, ext, encode_topic_list(TopicList(run(plan, redis)))

    yield topics(206, all_topics(KEYS))
    for cluster in CLUSTERS:
        yield topics(224, topics_of_cluster(KEYS, cluster), cluster=cluster)
    for code, kind in zip((311, 312, 313), UnitKind, strict=True):
        yield topics(code, unit_topics(KEYS, kind))
    yield 304, {}, encode_topic_list(system_topics(run(cluster_info(KEYS), redis)))
    for namespace in KVS:
        try:
            table = encode_kv_table(KVTable(run(kv.table(KEYS, namespace), redis)))
        except ConfigNotFound:
            table = None
        yield 219, {"namespace": namespace}, table
    options = overlay(Options(), run(settings.read(KEYS), redis))
    yield 319, {}, format_properties(dict(listing(options))).encode()


async def lists_agree(redis: redis_py.Redis, scene: Scene) -> bool:
    for code, ext, body in true_lists(redis):
        answer = await scene.ask(code, b"", ext)
        if (answer.body if answer.code == 0 else None) != body:
            return False
    return True


async def agrees(redis: redis_py.Redis, scene: Scene) -> bool:
    if not await lists_agree(redis, scene):
        return False
    for topic in TOPICS:
        for zone in (None, "z1"):
            ext = {} if zone is None else {"__ZONE_MODE": "true", "__ZONE_NAME": zone}
            answer = await scene.ask(105, b"", ext, topic=topic, version=513)
            if parsed(answer.body) != parsed(true_route(redis, scene, topic, zone)):
                return False
    return (await scene.ask(106)).body == encode_cluster_info(run(cluster_info(KEYS), redis))


def parsed(body: bytes) -> Any:
    """A route without the order of its lists, which is no promise."""
    if not body:
        return None
    route = json.loads(body)
    for name in ("brokerDatas", "queueDatas"):
        route[name].sort(key=lambda one: str(one["brokerName"]))
    return route


@pytest.mark.parametrize("seed", range(4))
@asynchronous
async def test_both_workers_answer_what_the_store_says(
    store: EmbeddedStore, redis: redis_py.Redis, seed: int
) -> None:
    dice = random.Random(seed)
    async with serving(store.url) as first, serving(store.url, "w2") as second:
        for _ in range(60):
            writer, reader = dice.sample((first, second), 2)
            await dice.choice(CHANGES)(writer, dice)
            assert await agrees(redis, writer)
            last: Any = redis.xrevrange(KEYS.events, count=1)
            assert await reached(reader.service.parts.follower, last[0][0] if last else "")
            assert await agrees(redis, reader)
        assert first.service.parts.counters.cache_hits > 100
        assert first.service.parts.counters.list_hits > 100
        assert first.service.parts.counters.resets == 0


@asynchronous
async def test_a_checkpoint_round_drops_nothing(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async with serving(store.url) as scene:
        for name in NAMES:
            broker = Broker(name, f"127.0.{NAMES.index(name)}.1:1")
            await scene.register(broker, broker.body(1, T1=6, T2=4))
        assert await agrees(redis, scene)
        counters = scene.service.parts.counters
        misses, fills, hits = counters.cache_misses, counters.list_fills, counters.cache_hits
        run(request_round(KEYS, "request", ACT), redis)
        assert run(checkpoint(KEYS, ACT, slices=100), redis).ended == 1
        last: Any = redis.xrevrange(KEYS.events, count=1)
        assert last[0][1]["scope"] == "end"
        assert await reached(scene.service.parts.follower, last[0][0])
        assert await agrees(redis, scene)
        assert counters.cache_hits > hits
        not_kept = len(KVS) + 1  # absent namespaces, and the cluster without topics
        assert (counters.cache_misses, counters.list_fills) == (misses, fills + not_kept)
        assert counters.resets == 0


@pytest.mark.parametrize("seed", range(2))
@asynchronous
async def test_leases_that_end_leave_no_untrue_answer_behind(
    store: EmbeddedStore, redis: redis_py.Redis, seed: int
) -> None:
    dice = random.Random(seed)
    changes = (*CHANGES, registers_for_a_moment, registers_for_a_moment, registers_for_a_moment)
    async with serving(store.url) as first, serving(store.url, "w2") as second:
        for _ in range(40):
            await dice.choice(changes)(dice.choice((first, second)), dice)
            for scene in (first, second):
                await eventually_async(partial(agrees, redis, scene))
