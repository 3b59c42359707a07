"""What a worker does once it finds that it stood still, or that its follower did: on a store, by a clock that jumps."""

import asyncio
import json

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.keys import Keys
from registry.store.connect import connect_follower
from rocketmq_remoting.codes import RequestCode
from testbed.eventually import eventually_async
from tests.logged import logged
from tests.worker.scene import Broker, Scene, asynchronous, serving
from worker.watch import standstill
from worker.watch.boot_clock import boot_time

A = Broker("broker-a", "127.0.0.1:10911")
KEYS = Keys()
NOWHERE = "redis://127.0.0.1:1/0"


class Clock:
    """CLOCK_BOOTTIME, and the time that the machine was suspended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.suspended_s = 0.0
        monkeypatch.setattr("worker.watch.standstill.boot_time", lambda: boot_time() + self.suspended_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@asynchronous
async def test_a_lookup_after_a_standstill_waits_for_stream_and_leases(
    store: EmbeddedStore, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        for _ in range(3):
            await scene.route()
        clock.suspended_s += 10
        scene.send(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="TA", version=513)
        assert scene.peer.sent.empty()
        assert not scene.service.parts.follower.connected
        reply = await scene.peer.sent.get()
        assert json.loads(reply.body)["queueDatas"][0]["perm"] == 6
        assert scene.service.parts.follower.connected
        scene.send(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="TA", version=513)
        assert not scene.peer.sent.empty()
    (line,) = logged(caplog)
    assert line.startswith("this worker stood still for 10")


@asynchronous
async def test_a_heartbeat_after_a_standstill_renews_the_lease(
    store: EmbeddedStore, redis: redis_py.Redis, clock: Clock
) -> None:
    async with serving(store.url) as scene:
        await scene.register(A, ext={"heartbeatTimeoutMillis": "86400000"})
        leases, member = KEYS.leases, "c1:127.0.0.1:10911"
        for _ in range(3):
            await scene.ask(RequestCode.BROKER_HEARTBEAT, b"", A.ext)
        moved = redis.zincrby(leases, -1000, member) or 0.0
        await scene.ask(RequestCode.BROKER_HEARTBEAT, b"", A.ext)
        assert redis.zscore(leases, member) == moved  # a thousandth of it is not over
        clock.suspended_s += 10
        await scene.ask(RequestCode.BROKER_HEARTBEAT, b"", A.ext)
        assert (redis.zscore(leases, member) or 0.0) > moved


@asynchronous
async def test_without_a_store_routes_are_answered_as_they_were(
    store: EmbeddedStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standstill, "ASK_S", 0.1)
    async with serving(store.url) as scene:
        await scene.register(A)
        before = await scene.route()
        monkeypatch.setattr(scene.service.parts.follower, "_connect", lambda: connect_follower(NOWHERE))
        clock.suspended_s += 10
        assert await scene.route() == before
        assert not scene.service.parts.follower.connected


@asynchronous
async def test_what_waits_is_let_go_at_the_end(store: EmbeddedStore, clock: Clock) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        await scene.route()
        clock.suspended_s += 10
        scene.send(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="TA", version=513)
    await asyncio.sleep(0)
    assert not scene.peer.sent.empty()


@asynchronous
async def test_a_stream_that_is_not_read_for_long_is_doubted(
    store: EmbeddedStore, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        follower = scene.service.parts.follower

        async def hangs(store: object) -> bool:
            await asyncio.sleep(1000)
            return False

        with monkeypatch.context() as patch:
            patch.setattr(follower, "_read", hangs)
            patch.setattr(standstill, "LATE_S", 1.5)
            await eventually_async(lambda: bool(logged(caplog)))
        await eventually_async(lambda: follower.connected and follower.silent_for_s() < 1.5)
    assert logged(caplog)[0].startswith("the event stream was not read for ")


@asynchronous
async def test_what_came_while_it_was_disconnected_is_applied_before_it_is_connected(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(store.url) as scene, serving(store.url, "w2") as other:
        await scene.register(A)
        follower = scene.service.parts.follower
        with monkeypatch.context() as patch:
            patch.setattr(follower, "_connect", lambda: connect_follower(NOWHERE))
            follower.doubt()
            for perm in (2, 4):
                await other.register(A, A.body(10 + perm, TA=perm, TB=6))
            last = other.service.parts.follower._position
        await _when_connected(scene)
        assert last is not None
        assert follower.passed(str(last))


async def _when_connected(scene: Scene) -> None:
    """Not an iteration of the loop later."""
    await scene.service.parts.follower._following.wait()
