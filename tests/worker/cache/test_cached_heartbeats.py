"""Cached heartbeats on a real store: when it is asked, and that no reply is used for too long."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.keys import Keys, member_key
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.remoting_command import SerializeType
from testbed.eventually import eventually_async
from tests.worker.scene import Broker, FakePeer, Scene, asynchronous, last_cause, serving

KEYS = Keys()
BROKER = Broker()
MEMBER = member_key("c1", BROKER.ext["brokerAddr"])
VERSION = DataVersion(0, 1000, 1).encode()
LONG = {"heartbeatTimeoutMillis": "86400000"}  # a thousandth of it outlasts any test


@asynccontextmanager
async def cached(store: EmbeddedStore) -> AsyncIterator[Scene]:
    """A registered broker whose heartbeats are cached."""
    async with serving(store.url) as scene:
        await scene.register(BROKER, ext=LONG)
        for _ in range(3):
            assert (await heartbeat(scene)).code == 0
            assert not await changed(scene)
        yield scene


async def heartbeat(scene: Scene) -> Command:
    return await scene.ask(RequestCode.BROKER_HEARTBEAT, ext=BROKER.ext)


async def changed(scene: Scene) -> bool:
    answer = await scene.ask(RequestCode.QUERY_DATA_VERSION, VERSION, ext=BROKER.ext)
    return answer.get("changed") == "true"


def moved_back(redis: redis_py.Redis) -> float:
    """The lease, after it was set to a second less than it was."""
    redis.zincrby(KEYS.leases, -1000, MEMBER)
    return redis.zscore(KEYS.leases, MEMBER) or 0.0


@asynchronous
async def test_within_a_thousandth_of_the_lease_nothing_is_written(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with cached(store) as scene:
        lease = moved_back(redis)
        frames = scene.service.parts.counters.cached_requests
        for _ in range(10):
            assert (await heartbeat(scene)).code == 0
            assert not await changed(scene)
        assert redis.zscore(KEYS.leases, MEMBER) == lease
        assert scene.service.parts.counters.cached_requests == frames + 20


@asynchronous
async def test_when_heartbeats_are_logged_each_is_though_its_lease_is_not_written(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url, events_heartbeats=True) as scene:
        for _ in range(5):
            assert (await scene.register(BROKER, ext=LONG)).code == 0
            assert (await heartbeat(scene)).code == 0
            assert not await changed(scene)
    kept: Any = redis.xrange(KEYS.heartbeats)
    codes = [fields["code"] for _, fields in kept]
    assert codes == ["103", "904", "322"] * 5


@asynchronous
async def test_after_a_change_of_whatever_kind_leases_are_written_again(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with cached(store) as scene:
        await scene.ask(RequestCode.PUT_KV_CONFIG, namespace="N", key="k", value="v")
        lease = moved_back(redis)
        await heartbeat(scene)
        assert (redis.zscore(KEYS.leases, MEMBER) or 0) > lease


@asynchronous
async def test_after_a_thousandth_of_the_lease_it_is_written_again(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url) as scene:
        await scene.register(BROKER, ext={"heartbeatTimeoutMillis": "5000"})
        for _ in range(3):
            await heartbeat(scene)
        lease = moved_back(redis)

        async def written() -> bool:
            assert (await heartbeat(scene)).code == 0
            return (redis.zscore(KEYS.leases, MEMBER) or 0) > lease

        await eventually_async(written)


@pytest.mark.parametrize("code", [RequestCode.QUERY_DATA_VERSION, RequestCode.BROKER_HEARTBEAT])
@asynchronous
async def test_a_broker_that_left_is_unknown_at_once(
    store: EmbeddedStore, redis: redis_py.Redis, code: RequestCode
) -> None:
    async with cached(store) as scene:
        await scene.ask(RequestCode.UNREGISTER_BROKER, ext=BROKER.ext)
        answer = await scene.ask(code, VERSION, ext=BROKER.ext)
        assert answer.code == 0
        if code == RequestCode.QUERY_DATA_VERSION:
            assert answer.get("changed") == "true"
            assert answer.body == b""
        assert redis.zscore(KEYS.leases, MEMBER) is None


@asynchronous
async def test_what_another_worker_changed_is_seen(store: EmbeddedStore) -> None:
    async with cached(store) as scene, serving(store.url, "w2") as other:
        await other.register(BROKER, BROKER.body(2), ext=LONG)

        async def seen() -> bool:
            return await changed(scene)

        await eventually_async(seen)
        answer = await scene.ask(RequestCode.QUERY_DATA_VERSION, VERSION, ext=BROKER.ext)
        assert answer.body == DataVersion(0, 1000, 2).encode()


@asynchronous
async def test_an_unchanged_registration_is_not_written_twice_in_a_moment(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with cached(store) as scene:
        first = await scene.register(BROKER, ext=LONG)
        lease = moved_back(redis)
        again = await scene.register(BROKER, ext=LONG)
        assert (again.ext, again.body) == (first.ext, first.body)
        assert redis.zscore(KEYS.leases, MEMBER) == lease
        other = FakePeer(77)
        assert (await scene.register(BROKER, ext=LONG, peer=other)).code == 0
        assert redis.hexists(KEYS.member(MEMBER), "owner:w1/77")


@asynchronous
async def test_a_lease_that_ended_is_not_renewed_from_the_cache(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url) as scene:
        await scene.register(BROKER, ext={"heartbeatTimeoutMillis": "1500"})
        for _ in range(3):
            await heartbeat(scene)

        async def gone() -> bool:
            return not await scene.addresses()

        await eventually_async(gone)
        assert (await heartbeat(scene)).code == 0
        assert await scene.addresses() == {"broker-a": {"0": BROKER.ext["brokerAddr"]}}
        assert last_cause(redis) == "revive"


@asynchronous
async def test_heartbeats_of_many_brokers_of_one_moment_are_one_call(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    brokers = [Broker(f"broker-{i}", f"127.0.0.{i}:1") for i in range(1, 51)]
    async with serving(store.url) as scene:
        for broker in brokers:
            await scene.register(broker)
        redis.config_resetstat()
        for _ in range(2):  # the first in the ordinary way, the second as cached requests
            for broker in brokers:
                scene.send(RequestCode.BROKER_HEARTBEAT, ext=broker.ext)
            for _ in brokers:
                assert (await scene.peer.sent.get()).code == 0
        assert redis.info("commandstats")["cmdstat_zmscore"]["calls"] <= 4


@asynchronous
async def test_one_member_of_the_wrong_type_does_not_harm_the_others(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    brokers = [Broker(f"broker-{i}", f"127.0.0.{i}:1") for i in range(1, 6)]
    async with serving(store.url) as scene:
        for broker in brokers:
            await scene.register(broker)
        broken = KEYS.member(member_key("c1", brokers[2].ext["brokerAddr"]))
        redis.delete(broken)
        redis.set(broken, "no hash")
        for broker in brokers:
            scene.send(RequestCode.BROKER_HEARTBEAT, ext=broker.ext)
        answers = [await scene.peer.sent.get() for _ in brokers]
        assert sorted(answer.code for answer in answers) == [0, 0, 0, 0, 1]


@asynchronous
async def test_a_heartbeat_with_another_reply_is_not_cached_under_another_request(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    """What the connection read last is another request when a cached heartbeat turns out to be answered otherwise."""
    async with cached(store) as scene:
        for _ in range(3):
            await scene.ask(RequestCode.BROKER_HEARTBEAT, ext=BROKER.ext, kind=SerializeType.ROCKETMQ)
        redis.hset(KEYS.member(MEMBER), "dv", "0:1000:9")
        await scene.ask(RequestCode.PUT_KV_CONFIG, namespace="N", key="k", value="v")
        await scene.route(kind=SerializeType.ROCKETMQ)
        await scene.ask(RequestCode.BROKER_HEARTBEAT, ext=BROKER.ext, kind=SerializeType.ROCKETMQ)
        for _ in range(3):
            assert (await scene.route(kind=SerializeType.ROCKETMQ))["queueDatas"]
