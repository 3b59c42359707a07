"""Tasks in the background: no entry, key or right of the store ends them, and all is right soon after the cause."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.drivers import run
from registry.keys import Keys
from registry.members import lease_clock
from registry.store.connect import BLOCK_MS
from registry.store.rights import store_rules
from registry.store.url import with_login
from testbed.eventually import eventually_async
from tests.worker.scene import Broker, Scene, asynchronous, serving
from worker.background import forever, pause

KEYS = Keys("default")
LIVING, DYING = Broker("broker-a", "127.0.0.1:10911"), Broker("broker-b", "127.0.0.3:10911")
CAUSE_S = 3.0
RIGHT_AGAIN_S = 5.0
DYING_MS = 6000
USER, PASSWORD = "worker", "of-tests"


@asynchronous
async def test_whatever_ends_a_task_it_begins_again(caplog: pytest.LogCaptureFixture) -> None:
    runs = 0

    async def run() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise KeyError("addr")

    task = asyncio.create_task(forever("the test", run))
    await eventually_async(lambda: runs >= 3)
    task.cancel()
    (line,) = (record for record in caplog.records if record.name != "asyncio")  # of the like
    assert line.getMessage().startswith("the test ended by a fault of this server and begins again in ")
    assert line.exc_info


@pytest.mark.parametrize(("at_s", "for_s"), [(7.0, 0.5), (7.1, 0.4), (7.44, 0.06), (7.46, 0.54)])
@asynchronous
async def test_periodic_tasks_wake_together(
    monkeypatch: pytest.MonkeyPatch, at_s: float, for_s: float
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        time.sleep(0.1)

    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: at_s)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    late_s = await pause(0.5)
    monkeypatch.undo()
    assert slept == [pytest.approx(for_s)]
    assert (late_s > 0) == (for_s < 0.1)


def acl(redis: Any, *words: str) -> object:
    return redis.execute_command("ACL", *words)


Cause = Callable[[redis_py.Redis], Callable[[], object]]
"""Does something to the store, and returns what undoes it."""


def wrong_type(key: str) -> Cause:
    def do(redis: redis_py.Redis) -> Callable[[], object]:
        redis.rename(key, "aside")
        redis.set(key, "an operator's")
        return lambda: redis.rename("aside", key)

    return do


def no_rights(redis: redis_py.Redis) -> Callable[[], object]:
    acl(redis, "SETUSER", USER, "-@all")
    return lambda: acl(redis, "SETUSER", USER, *store_rules(["default"]).split())


def unreadable_entry(redis: redis_py.Redis) -> Callable[[], object]:
    redis.xadd(KEYS.events, {"seq": "no number"})
    return lambda: None


@asynccontextmanager
async def guarded_scene(store: EmbeddedStore, redis: redis_py.Redis) -> AsyncIterator[Scene]:
    """A worker with a login of its own, two brokers registered, one of them for six seconds only."""
    acl(redis, "SETUSER", USER, "on", f">{PASSWORD}", *store_rules(["default"]).split())
    async with serving(with_login(store.url, USER, PASSWORD)) as scene:
        await scene.register(LIVING)
        await scene.register(DYING, heartbeatTimeoutMillis=str(DYING_MS))
        yield scene
    acl(redis, "DELUSER", USER)


@pytest.mark.parametrize(
    "cause",
    [
        pytest.param(unreadable_entry, id="an entry that cannot be read"),
        pytest.param(wrong_type(KEYS.events), id="a stream of the wrong type"),
        pytest.param(wrong_type(KEYS.leases), id="leases of the wrong type"),
        pytest.param(wrong_type(KEYS.workers), id="workers of the wrong type"),
        pytest.param(no_rights, id="no rights"),
    ],
)
@asynchronous
async def test_all_is_right_soon_after_the_cause(
    store: EmbeddedStore, redis: redis_py.Redis, cause: Cause
) -> None:
    async with guarded_scene(store, redis) as scene:
        undo = cause(redis)
        began_ms = now_ms(redis)
        until = time.monotonic() + CAUSE_S
        while time.monotonic() < until:  # brokers and clients go on meanwhile
            await scene.ask(904, b"", LIVING.ext)
            await scene.route()
            await asyncio.sleep(0.1)
        clock = run(lease_clock(KEYS), redis)
        if cause is not unreadable_entry:  # readiness tells, 5 s after the last success
            assert min(clock.tick_ms or 0, clock.follow_ms or 0) < began_ms + BLOCK_MS + 1000
        undo()

        async def is_right() -> bool:
            began = time.monotonic()
            code = (await scene.register(LIVING, LIVING.body(int(began * 1000)))).code
            return code == 0 and time.monotonic() - began < 1 and "broker-a" in await scene.addresses()

        await eventually_async(is_right, RIGHT_AGAIN_S)
        await eventually_async(lambda: only_living(scene), DYING_MS / 1000 + RIGHT_AGAIN_S)
        await eventually_async(lambda: min_age_ms(redis) < 1500)


def now_ms(redis: redis_py.Redis) -> int:
    seconds, micros = redis.time()
    return int(seconds * 1000 + micros // 1000)


def min_age_ms(redis: redis_py.Redis) -> int:
    clock = run(lease_clock(KEYS), redis)
    return clock.now_ms - min(clock.tick_ms or 0, clock.follow_ms or 0)


async def only_living(scene: Scene) -> bool:
    return set(await scene.addresses()) == {"broker-a"}
