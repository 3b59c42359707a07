"""Readiness of one worker, from its own follower and its own ticks."""

from functools import partial

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.store.connect import connect_follower
from rocketmq_remoting.codes import RequestCode
from testbed.eventually import eventually_async
from tests.worker.scene import Scene, asynchronous, serving
from worker.watch import readiness
from worker.watch.boot_clock import boot_time

NOWHERE = "redis://127.0.0.1:1/0"


async def remark(scene: Scene) -> str:
    """Of the refusal; "" when it is ready."""
    reply = await scene.ask(RequestCode.CHECK_READINESS)
    assert bool(reply.code) == bool(reply.remark)
    return reply.remark or ""


async def says(scene: Scene, late: str) -> bool:
    return (await remark(scene)).startswith(late) if late else not await remark(scene)


@pytest.mark.conformance("19876-02")
@asynchronous
async def test_a_worker_that_does_not_follow_the_stream_is_not_ready(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "LATE_S", 1.5)
    async with serving(store.url) as scene:
        assert await remark(scene) == ""
        follower = scene.service.parts.follower
        with monkeypatch.context() as patch:
            patch.setattr(follower, "_connect", lambda: connect_follower(NOWHERE))
            follower.doubt()
            await eventually_async(partial(says, scene, "not ready: the event stream was not read for 1."))
        await eventually_async(partial(says, scene, ""))


@pytest.mark.conformance("19876-03")
@asynchronous
async def test_all_workers_say_when_the_service_began_ready_or_not(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(store.url) as one, serving(store.url) as other:
        ready = await one.ask(RequestCode.CHECK_READINESS)
        monkeypatch.setattr("worker.watch.ticker.boot_time", lambda: boot_time() + 6)
        late = await other.ask(RequestCode.CHECK_READINESS)
        began = {"startedMillis": redis.hget(one.service.parts.keys.events_meta, "started_ms")}
        assert (ready.code, ready.ext) == (0, began)
        assert (late.code, late.ext) == (1, began)


@asynchronous
async def test_a_worker_whose_ticks_fail_is_not_ready(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(store.url) as scene:
        monkeypatch.setattr("worker.watch.ticker.boot_time", lambda: boot_time() + 6)
        late = await remark(scene)
        assert late.startswith("not ready: leases were not watched for 6.")
        await eventually_async(partial(says, scene, ""))
