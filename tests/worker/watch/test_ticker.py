"""Leases and the ticker: gone from cached answers when the lease ends, back when it turns out not to have."""

import asyncio
import time

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.drivers import run
from registry.expiry.worker_lease import OVERDUE_MOST, is_member, names_of_members
from registry.keys import Keys
from testbed.eventually import PATIENCE_S, eventually_async
from tests.worker.scene import Broker, Scene, asynchronous, last_cause, serving
from worker.watch import ticker

A, B = Broker("broker-a", "127.0.0.1:10911"), Broker("broker-b", "127.0.0.3:10911")
KEYS = Keys("default")


@asynchronous
async def test_a_lapsed_broker_leaves_cached_answers_before_the_next_regular_tick(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticker, "PERIOD_S", 2 * PATIENCE_S)
    async with serving(store.url) as scene:
        await scene.register(B)
        before = time.monotonic()
        await scene.register(A, heartbeatTimeoutMillis="900")
        after = time.monotonic()
        both = {"broker-a": {"0": "127.0.0.1:10911"}, "broker-b": {"0": "127.0.0.3:10911"}}
        assert await scene.addresses() == both
        assert b"broker-a" in (await scene.ask(106)).body
        while await scene.addresses() == both:
            await asyncio.sleep(0.001)
        gone = time.monotonic()
        assert gone - before > 0.895
        assert gone - after < PATIENCE_S  # milliseconds late on an idle machine
        assert await scene.addresses() == {"broker-b": {"0": "127.0.0.3:10911"}}
        assert b"broker-a" not in (await scene.ask(106)).body


@asynchronous
async def test_a_lapsed_broker_with_a_new_heartbeat_is_back_at_once(store: EmbeddedStore) -> None:
    async with serving(store.url) as scene:
        await scene.register(A, heartbeatTimeoutMillis="1500")
        await eventually_async(lambda: _gone(scene))
        await scene.ask(904, b"", A.ext)
        assert await scene.addresses() == {"broker-a": {"0": "127.0.0.1:10911"}}


async def _gone(scene: Scene) -> bool:
    return await scene.addresses() == {}


@asynchronous
async def test_a_worker_holds_mass_expiries_if_the_option_says_so(store: EmbeddedStore) -> None:
    """One is gone at once; with the second it is a mass expiry, and both are answered again."""
    async with serving(store.url, expiry_hold_millis=60_000, expiry_hold_least=2) as scene:
        await scene.register(A, heartbeatTimeoutMillis="50")
        await eventually_async(lambda: _gone(scene))
        await scene.register(Broker("broker-b", "127.0.0.1:10921"), heartbeatTimeoutMillis="50")

        async def both_are_back() -> bool:
            return [*(await scene.addresses())] == ["broker-a", "broker-b"]

        await eventually_async(both_are_back)


@asynchronous
async def test_a_lease_that_others_renewed_after_it_ended_is_seen(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    """The store alone knows of it: the member leaves the overdue list without an event."""
    async with serving(store.url) as scene:
        await scene.register(A, heartbeatTimeoutMillis="50")
        await eventually_async(lambda: _gone(scene))
        await scene.service.parts.ticker.step()  # a lookup may have found the end before it
        member = "c1:127.0.0.1:10911"
        redis.zadd(KEYS.leases, {member: int(time.time() * 1000) + 60_000})
        await scene.service.parts.ticker.step()
        assert await scene.addresses() == {"broker-a": {"0": "127.0.0.1:10911"}}


@asynchronous
async def test_lapses_that_no_job_records_are_recorded_by_a_worker(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url) as scene:
        await scene.register(A, heartbeatTimeoutMillis="50")
        await eventually_async(lambda: _gone(scene))
        assert run(is_member(KEYS, "c1:127.0.0.1:10911"), redis)
        redis.zadd(KEYS.leases, {"c1:127.0.0.1:10911": int(time.time() * 1000) - 10_001})
        await scene.service.parts.ticker.step()
        await eventually_async(lambda: not run(is_member(KEYS, "c1:127.0.0.1:10911"), redis))
        assert last_cause(redis) == "expired"


@asynchronous
async def test_more_lapses_than_a_tick_looks_at_are_recorded_at_once(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the last of them would stay in cached answers until a job has recorded the first."""
    monkeypatch.setattr(ticker, "UNRECORDED_MS", 10**9)
    async with serving(store.url) as scene:
        await scene.register(A)
        assert await scene.addresses() == {"broker-a": {"0": "127.0.0.1:10911"}}
        now_ms = int(time.time() * 1000)
        redis.zadd(KEYS.leases, {f"c1:127.0.0.8:{n}": now_ms - 2000 for n in range(OVERDUE_MOST)})
        redis.zadd(KEYS.leases, {"c1:127.0.0.1:10911": now_ms - 1000})
        await eventually_async(lambda: _gone(scene))


@asynchronous
async def test_a_worker_is_among_the_workers_once_it_serves(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url, "w7"):
        assert redis.zrange(KEYS.workers, 0, -1) == ["w7"]


@asynchronous
async def test_ticks_go_on_after_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    async with serving("redis://127.0.0.1:1/0") as scene:
        assert scene.service.parts.ticker.service_age_s() is None
        assert await scene.service.parts.ticker.step() == 1.0
    (line,) = [record.getMessage() for record in caplog.records if record.name == "worker.watch.ticker"]
    assert line.startswith("leases cannot be watched: ")
    assert line.endswith("; retries every 1 s")


@asynchronous
async def test_the_names_of_members_are_those_they_registered(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with serving(store.url) as scene:
        await scene.register(A)
        await scene.register(Broker("broker:z", "127.0.0.1:10911", id=2))
        assert run(names_of_members(KEYS, ["c1:127.0.0.1:10911", "c1:no-such-host:1"]), redis) == {
            "broker-a",
            "broker:z",
        }


@asynchronous
async def test_a_worker_that_ends_has_no_lease(store: EmbeddedStore) -> None:
    """One that is killed keeps it, and the doctor names it."""
    client = redis_py.Redis.from_url(store.url)
    before = client.zrange(KEYS.workers, 0, -1)
    async with serving(store.url):
        assert len(client.zrange(KEYS.workers, 0, -1)) == len(before) + 1
    assert client.zrange(KEYS.workers, 0, -1) == before
