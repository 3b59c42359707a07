"""Cached registrations on a real store: the answers are those of a service without caches."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis as redis_py
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mqnamesrv.store import EmbeddedStore
from registry.keys import Keys, member_key
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.remoting_command import ONEWAY_FLAG, SerializeType
from testbed.eventually import PATIENCE_S, eventually_async
from tests.worker.registrations import ADDRESS, BINARY, JSON, KINDS, body_of, registration
from tests.worker.scene import FakePeer, Scene, asynchronous, serving
from worker.service import Service

KEYS = Keys()
MEMBER = member_key("c1", ADDRESS)
NAMES = {"clusterName": "c1", "brokerAddr": ADDRESS, "brokerName": "broker-a", "brokerId": "0"}


async def register(scene: Scene, command: Command, peer: FakePeer | None = None) -> Command:
    """The answer to whatever is asked."""
    to = peer or scene.peer
    to.receive(command, scene.service)
    return await asyncio.wait_for(to.sent.get(), PATIENCE_S)


@asynccontextmanager
async def cached(store: EmbeddedStore, topics: int = 3, **header: Any) -> AsyncIterator[Scene]:
    """A broker that has registered and is cached, in both encodings."""
    async with serving(store.url) as scene:
        for kind in KINDS:
            for stamp in range(4):
                asked = registration(body_of(stamp, topics), kind=kind, **header)
                assert (await register(scene, asked)).code == 0
        yield scene


def moved_back(redis: redis_py.Redis) -> float:
    """The lease, after it was set to a second less than it was."""
    redis.zincrby(KEYS.leases, -1000, MEMBER)
    return redis.zscore(KEYS.leases, MEMBER) or 0.0


@pytest.mark.parametrize("topics", [3, 1000])
@pytest.mark.parametrize("kind", KINDS, ids=str)
@asynchronous
async def test_within_a_thousandth_of_the_lease_nothing_is_asked(
    store: EmbeddedStore, redis: redis_py.Redis, kind: SerializeType, topics: int
) -> None:
    async with cached(store, topics) as scene:
        lease, frames = moved_back(redis), scene.service.parts.counters.cached_requests
        first = await register(scene, registration(body_of(10, topics), 10, kind))
        for opaque in range(11, 20):
            answer = await register(scene, registration(body_of(opaque, topics), opaque, kind))
            assert answer == replace(first, opaque=opaque)
        assert redis.zscore(KEYS.leases, MEMBER) == lease
        assert scene.service.parts.counters.cached_requests == frames + 10


@asynchronous
async def test_after_a_change_of_whatever_kind_the_lease_is_written_again(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with cached(store) as scene:
        await scene.ask(RequestCode.PUT_KV_CONFIG, namespace="N", key="k", value="v")
        lease, scripts = moved_back(redis), redis.info("commandstats")
        assert (await register(scene, registration(body_of(10)))).code == 0
        assert (redis.zscore(KEYS.leases, MEMBER) or 0) > lease
        calls = redis.info("commandstats")["cmdstat_evalsha"]["calls"]
        assert calls <= scripts["cmdstat_evalsha"]["calls"] + 2  # and a tick


@pytest.mark.parametrize("topics", [3, 1000])
@asynchronous
async def test_after_a_thousandth_of_the_lease_it_is_written_again(
    store: EmbeddedStore, redis: redis_py.Redis, topics: int
) -> None:
    async with cached(store, topics, heartbeatTimeoutMillis="5000") as scene:
        lease, asked = moved_back(redis), registration(body_of(9, topics), heartbeatTimeoutMillis="5000")

        async def written() -> bool:
            assert (await register(scene, asked)).code == 0
            return (redis.zscore(KEYS.leases, MEMBER) or 0) > lease

        await eventually_async(written)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@asynchronous
async def test_a_wrong_checksum_is_refused(store: EmbeddedStore, kind: SerializeType) -> None:
    async with cached(store) as scene:
        answer = await register(scene, registration(body_of(10), kind=kind, bodyCrc32="1234567890"))
        assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "crc32 not match")


@asynchronous
async def test_a_broker_that_left_is_back_with_its_next_registration(store: EmbeddedStore) -> None:
    async with cached(store) as scene:
        await scene.ask(RequestCode.UNREGISTER_BROKER, ext=NAMES)
        assert await scene.addresses("T1") == {}
        assert (await register(scene, registration(body_of(10)))).code == 0
        assert await scene.addresses("T1") == {"broker-a": {"0": ADDRESS}}


@asynchronous
async def test_a_broker_whose_lease_ended_is_back_with_its_next_registration(store: EmbeddedStore) -> None:
    async with cached(store, heartbeatTimeoutMillis="1500") as scene:

        async def gone() -> bool:
            return not await scene.addresses("T1")

        await eventually_async(gone)
        assert (await register(scene, registration(body_of(10), heartbeatTimeoutMillis="1500"))).code == 0
        assert await scene.addresses("T1") == {"broker-a": {"0": ADDRESS}}


@asynchronous
async def test_what_another_worker_changed_is_undone(store: EmbeddedStore) -> None:
    async with cached(store) as scene, serving(store.url, "w2") as other:
        await scene.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, topic="T1")
        assert (await register(other, registration(body_of(1, perm=4, counter=2)))).code == 0
        assert (await register(scene, registration(body_of(10)))).code == 0
        route = await other.route("T1")
        assert [queue["perm"] for queue in route["queueDatas"]] == [6]


@asynchronous
async def test_the_order_table_is_that_of_now(store: EmbeddedStore) -> None:
    async with cached(store) as scene:
        for value in ("broker-a:4", "broker-a:5"):
            put = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": value}
            assert (await scene.ask(RequestCode.PUT_KV_CONFIG, ext=put)).code == 0
            for stamp in range(10, 13):
                answer = await register(scene, registration(body_of(stamp)))
                assert value.encode() in answer.body


@asynchronous
async def test_settings_that_changed_hold_at_once(store: EmbeddedStore) -> None:
    async with cached(store) as scene:
        put = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": "broker-a:4"}
        await scene.ask(RequestCode.PUT_KV_CONFIG, ext=put)
        for shown in ("true", "false", "true"):
            text = f"returnOrderTopicConfigToBroker={shown}".encode()
            assert (await scene.ask(RequestCode.UPDATE_NAMESRV_CONFIG, text)).code == 0
            for stamp in range(10, 13):
                answer = await register(scene, registration(body_of(stamp)))
                assert bool(answer.body) == (shown == "true")


@asynchronous
async def test_over_another_connection_it_is_another_registration(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with cached(store, heartbeatTimeoutMillis="86400000") as scene:
        other = scene.connect()
        assert (await register(scene, registration(body_of(10)), other)).code == 0
        assert MEMBER in other.registered
        marks = {f"owner:w1/{peer.id}" for peer in (scene.peer, other)}
        assert marks <= set(redis.hkeys(KEYS.member(MEMBER)))
        for peer in (scene.peer, other, scene.peer):  # of two that take turns each is answered
            assert (await register(scene, registration(body_of(11)), peer)).code == 0
        scene.disconnect(scene.peer)
        await eventually_async(lambda: f"owner:w1/{scene.peer.id}" not in redis.hkeys(KEYS.member(MEMBER)))
        assert (await register(scene, registration(body_of(12)), other)).code == 0
        assert await scene.addresses("T1") == {"broker-a": {"0": ADDRESS}}


@asynchronous
async def test_one_way_it_is_not_answered(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async with cached(store) as scene:
        await scene.ask(RequestCode.UNREGISTER_BROKER, ext=NAMES)
        scene.peer.receive(registration(body_of(10), flag=ONEWAY_FLAG), scene.service)

        async def back() -> bool:
            return bool(await scene.addresses("T1"))

        await eventually_async(back)
        assert scene.peer.sent.empty()


@asynchronous
async def test_in_the_encoding_that_is_forced(store: EmbeddedStore) -> None:
    async with serving(store.url, reply_encoding="json") as scene:
        for stamp in range(5):
            answer = await register(scene, registration(body_of(stamp), stamp, BINARY))
            assert (answer.code, answer.opaque, answer.serialize_type) == (0, stamp, JSON)


class WithoutCache(FakePeer):
    """A connection that never asks the service for cached requests."""

    def receive(self, command: Command, service: Service) -> None:
        self._frame = encode(command)
        service.handle(command, self)


ORDER = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1"}
OTHERS = [
    Command(RequestCode.UNREGISTER_BROKER, 1, ext=NAMES),
    Command(RequestCode.PUT_KV_CONFIG, 2, ext=ORDER | {"value": "broker-a:4"}),
    Command(RequestCode.PUT_KV_CONFIG, 3, ext=ORDER | {"value": "broker-a:5"}),
    Command(RequestCode.DELETE_KV_CONFIG, 4, ext=ORDER),
    Command(RequestCode.DELETE_TOPIC_IN_NAMESRV, 5, ext={"topic": "T1"}),
    Command(RequestCode.WIPE_WRITE_PERM_OF_BROKER, 6, ext=NAMES),
    Command(RequestCode.UPDATE_NAMESRV_CONFIG, 7, body=b"returnOrderTopicConfigToBroker=false"),
    Command(RequestCode.UPDATE_NAMESRV_CONFIG, 8, body=b"deleteTopicWithBrokerRegistration=true"),
    registration(body_of(9), bodyCrc32="1234567890"),
]
registrations = st.builds(
    lambda topics, counter, kind, broker_id: [
        registration(body_of(stamp, topics, counter), stamp, kind, brokerId=broker_id)
        for stamp in range(1, 5)
    ],
    st.integers(3, 4),
    st.integers(1, 2),
    st.sampled_from(KINDS),
    st.sampled_from("001"),
)
steps = st.lists(
    st.tuples(registrations | st.sampled_from(OTHERS).map(lambda one: [one]), st.booleans()),
    min_size=4,
    max_size=12,
)


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps)
def test_whatever_is_answered_from_memory_is_what_a_service_without_memory_answers(
    store: EmbeddedStore, redis: redis_py.Redis, taken: list[tuple[list[Command], bool]]
) -> None:
    redis.flushall()
    asyncio.run(_compared(store, taken))


async def _compared(store: EmbeddedStore, taken: list[tuple[list[Command], bool]]) -> None:
    async with (
        serving(store.url, namespace="a") as remembering,
        serving(store.url, namespace="b") as forgetful,
    ):
        peers = [(remembering.connect(), WithoutCache(77)), (remembering.connect(), WithoutCache(78))]
        route = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, 1, ext={"topic": "T1"})
        for commands, first in taken:
            for command in (*commands, route):
                mine, twin = peers[first]
                answer = await register(remembering, command, mine)
                assert answer == await register(forgetful, command, twin)
