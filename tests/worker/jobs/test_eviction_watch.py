"""A store that evicts keys since its policy was changed at run time."""

from collections.abc import Iterator

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.drivers import AsyncDriver, run
from registry.store.check import evicting_policy
from registry.store.connect import connect_async
from tests.logged import logged
from tests.worker.scene import asynchronous
from worker.jobs.eviction_watch import EvictionWatch


@pytest.fixture
def evicting(redis: redis_py.Redis) -> Iterator[redis_py.Redis]:
    before = {name: str(redis.config_get(name)[name]) for name in ("maxmemory", "maxmemory-policy")}
    assert run(evicting_policy(), redis) is None
    redis.config_set("maxmemory", "1gb")
    redis.config_set("maxmemory-policy", "allkeys-lru")
    yield redis
    for name, value in before.items():
        redis.config_set(name, value or "0")


@pytest.mark.parametrize("allowed", [False, True])
@asynchronous
async def test_it_is_logged_unless_allowed(
    store: EmbeddedStore, evicting: redis_py.Redis, caplog: pytest.LogCaptureFixture, allowed: bool
) -> None:
    driver = AsyncDriver(connect_async(store.url))
    watch = EvictionWatch(driver, allowed=allowed)
    for _ in range(2):
        await watch.look()
    await driver.close()
    assert [line.partition(":")[0] for line in logged(caplog)] == [
        "maxmemory-policy of the store is allkeys-lru"
    ] * (not allowed)


@asynchronous
async def test_a_store_that_is_away_is_for_others_to_log(caplog: pytest.LogCaptureFixture) -> None:
    driver = AsyncDriver(connect_async("redis://127.0.0.1:1"))
    await EvictionWatch(driver, allowed=False).look()
    await driver.close()
    assert logged(caplog) == []
