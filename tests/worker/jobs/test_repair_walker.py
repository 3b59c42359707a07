"""The process that walks over the tables: one of several, and its lines in the log."""

import asyncio
import logging
from contextlib import suppress
from functools import partial

import pytest
import redis as redis_py
import redis.asyncio as redis_asyncio

from mqnamesrv.store import EmbeddedStore
from registry import task_times
from registry.drivers import AsyncDriver, run
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.repair.slices import ClaimLost
from registry.repair.state import Repaired
from registry.repair.walk import Walk
from registry.store.connect import connect_async
from testbed.eventually import eventually_async
from tests.logged import logged
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace
from worker.jobs import repair_walker
from worker.jobs.repair_walker import RepairWalker
from worker.jobs.task_record import TaskRecord

KEYS = Keys()


def walker(store: redis_asyncio.Redis) -> RepairWalker:
    return RepairWalker(Options(), AsyncDriver(store), KEYS, rows_per_s=100_000)


def test_damage_is_repaired_and_logged(
    redis: redis_py.Redis, async_redis: redis_asyncio.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    ns = Namespace(redis)
    ns.register("b1", 0, ("T1", "T2"))
    redis.delete(KEYS.route("T1"))

    async def walk() -> None:
        one = walker(async_redis)
        assert await one.walk()
        assert not await walker(async_redis).walk()  # the claim is the other's
        assert await one.walk()
        await async_redis.aclose()

    with caplog.at_level(logging.WARNING):
        asyncio.run(walk())
    assert ns.route("T1").queue_datas
    [line] = logged(caplog)
    assert line.startswith("tables were damaged, and 1 rows were repaired (brokers 0, members 0, topics 1, ")


def test_the_one_that_walks_has_the_claim_and_records_its_walks(
    redis: redis_py.Redis, async_redis: redis_asyncio.Redis
) -> None:
    ns = Namespace(redis)
    ns.register("b1", 0, ("T1", "T2"))
    redis.delete(KEYS.route("T1"))
    repaired: list[Repaired] = []

    async def walk() -> list[bool]:
        driver = AsyncDriver(async_redis)
        record = TaskRecord(KEYS, lambda plan: driver.start(plan, lambda *_: None))
        walkers = [RepairWalker(Options(), driver, KEYS, 100_000, record, repaired.append) for _ in range(2)]
        before = [one.has_claim for one in walkers]
        for one in walkers:
            await one.walk()
        claims = [one.has_claim for one in walkers]
        await driver.close()
        return before + claims

    assert asyncio.run(walk()) == [False, False, True, False]
    assert [one.total for one in repaired] == [1, 0]
    time = run(task_times.read(KEYS), redis)[task_times.WALK]
    assert (time.every_s, abs(time.at_ms / 1000 - redis.time()[0]) < 60) == (25, True)


def test_keys_of_a_wrong_type_are_named(
    redis: redis_py.Redis, async_redis: redis_asyncio.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis.set(KEYS.drains, "x")
    redis.set(KEYS.kv("odd\nname"), "x")
    redis.sadd(KEYS.kv_namespaces, "odd\nname")

    async def walk() -> None:
        assert await walker(async_redis).walk()
        await async_redis.aclose()

    with caplog.at_level(logging.WARNING):
        asyncio.run(walk())
    [line] = logged(caplog)
    assert f"are lost, 2: '{KEYS.drains}', '{KEYS.prefix}kv:odd\\nname'); find out" in line


def test_walks_follow_one_another(
    redis: redis_py.Redis, async_redis: redis_asyncio.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repair_walker, "EVERY_S", 0.05)
    ns = Namespace(redis)
    ns.register("b1", 0, ("T1", "T2"))

    async def walk() -> None:
        task = asyncio.create_task(walker(async_redis).run())
        for topic in ("T1", "T2"):
            redis.delete(KEYS.route(topic))
            await eventually_async(partial(_has_route, ns, topic))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await async_redis.aclose()

    asyncio.run(walk())


async def _has_route(ns: Namespace, topic: str) -> bool:
    return bool(ns.store.exists(KEYS.route(topic)))


def test_a_store_that_refuses_is_logged(
    store: EmbeddedStore, redis: redis_py.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis.acl_setuser("few", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-type"])
    try:

        async def walk() -> None:
            client = connect_async(f"{store.url}?username=few&password=x")
            one = walker(client)
            for _ in range(2):
                assert not await one.walk()
            redis.acl_setuser(
                "few", enabled=True, nopass=True, commands=["+type"]
            )  # else no new connection may be
            for _ in range(2):
                assert await one.walk()
            await client.aclose()

        with caplog.at_level(logging.WARNING):
            asyncio.run(walk())
    finally:
        redis.acl_deluser("few")
    lines = logged(caplog)
    assert [line for line in lines if "compare the rights of the user" in line] == lines[:1], lines
    assert lines[1:] == ["tables are compared again"], lines


def test_a_store_that_is_away_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def walk() -> None:
        client = connect_async("redis://127.0.0.1:1")
        assert not await walker(client).walk()
        await client.aclose()

    with caplog.at_level(logging.WARNING):
        asyncio.run(walk())
    assert any("tables cannot be compared" in record.getMessage() for record in caplog.records)


def test_a_walk_that_was_stopped_claims_nothing(redis: redis_py.Redis) -> None:
    """Its process has released the claim, and the plan goes on: another process walks meanwhile."""
    walk = Walk(KEYS, origin(), "w", timeout_ms=1_000)
    walk.stop()
    with pytest.raises(ClaimLost):
        run(walk.run(), redis)
    assert not redis.exists(KEYS.repair_walker)


def test_the_claim_of_one_that_ends_is_free(redis: redis_py.Redis, async_redis: redis_asyncio.Redis) -> None:
    async def walk() -> list[bool]:
        first, second = walker(async_redis), walker(async_redis)
        walked = [await first.walk(), await second.walk()]
        await second.release()
        walked.append(await second.walk())
        await first.release()
        walked.append(await second.walk())
        await async_redis.aclose()
        return walked

    assert asyncio.run(walk()) == [True, False, False, True]
