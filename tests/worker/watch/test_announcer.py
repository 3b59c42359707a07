"""A worker announces its address while it is ready, and no more when it makes way."""

import logging
from typing import Any

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.announcements import ready_addresses
from registry.drivers import run
from registry.keys import Keys
from testbed.eventually import eventually_async
from tests.worker.scene import Scene, asynchronous, serving
from worker.logs.rate_limited_log import RateLimitedLog
from worker.watch import announcer

ADDRESS = "10.0.0.1:9876"
MEMBER = f"{ADDRESS} w1"


def answered(redis: redis_py.Redis) -> tuple[str, ...]:
    return run(ready_addresses(Keys()), redis)


def last(redis: redis_py.Redis) -> float | None:
    score: float | None = redis.zscore(Keys().announced, MEMBER)
    return score


async def steps(scene: Scene, redis: redis_py.Redis) -> bool:
    """Return whether a step announces."""
    redis.delete(Keys().announced)
    await scene.service.parts.announcer.step()
    return bool(redis.exists(Keys().announced))


@asynchronous
async def test_a_worker_announces_again_and_again(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async with serving(store.url, advertise_address=ADDRESS):
        await eventually_async(lambda: answered(redis) == (ADDRESS,))
        first = last(redis)
        await eventually_async(lambda: last(redis) != first)


@asynchronous
async def test_one_without_an_address_announces_none(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async with serving(store.url) as scene:
        assert not await steps(scene, redis)


@asynchronous
async def test_one_that_does_not_follow_the_stream_is_not_announced(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(store.url, advertise_address=ADDRESS) as scene:
        assert await steps(scene, redis)
        monkeypatch.setattr(type(scene.service.parts.follower), "connected", False)
        assert not await steps(scene, redis)


@asynchronous
async def test_one_that_makes_way_is_not_announced(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async with serving(store.url, advertise_address=ADDRESS) as scene:
        assert await steps(scene, redis)
        scene.service.end_announcing()
        assert not await steps(scene, redis)


@asynchronous
async def test_a_store_that_refuses_is_logged(
    store: EmbeddedStore,
    redis: redis_py.Redis,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: Any = RateLimitedLog(logging.getLogger(announcer.__name__))
    monkeypatch.setattr(announcer, "log", log)
    async with serving(store.url, advertise_address=ADDRESS) as scene:
        redis.set(Keys().announced, "damaged")
        await scene.service.parts.announcer.step()
        redis.delete(Keys().announced)
    (line,) = {record.message for record in caplog.records if "nsaddr" in record.message}
    assert line.startswith(f"/rocketmq/nsaddr does not have {ADDRESS}, since the store refuses: WRONGTYPE")
