"""A limiter, and big registrations that wait for one another in it."""

import asyncio
import time

import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.drivers import AsyncDriver, run
from registry.keys import Keys
from registry.long_work.limiter import Limiter
from registry.plans import Acquire, Pause, Plan
from registry.registration.cache import BIG_AT_ONCE, RegistrationCache
from registry.registration.register import register
from registry.store.connect import connect_async
from tests.registry.brokers import origin, registration
from tests.registry.check_tables import check_tables
from tests.registry.watched import Watched

KEYS = Keys()
MANY = [f"a-topic-with-a-usual-name-{number:05}" for number in range(1200)]


def test_they_acquire_in_the_order_in_which_they_came() -> None:
    limiter, inside = Limiter(2), []
    for number in range(5):
        limiter.acquire(lambda number=number: inside.append(number))  # type: ignore[misc]
    assert inside == [0, 1]
    limiter.release()
    assert inside == [0, 1, 2]
    for _ in range(4):
        limiter.release()
    assert inside == [0, 1, 2, 3, 4]
    limiter.acquire(lambda: inside.append(5))
    limiter.acquire(lambda: inside.append(6))
    limiter.acquire(lambda: inside.append(7))
    assert inside[5:] == [5, 6]


def visits(limiter: Limiter, inside: list[int]) -> Plan[int]:
    yield Acquire(limiter)
    inside.append(len(inside))
    most = len(inside)
    yield Pause(0.001)
    inside.pop()
    limiter.release()
    return most


def test_on_a_loop_no_more_are_in_it_than_it_has_places(store: EmbeddedStore) -> None:
    async def asked() -> list[int]:
        driver, limiter, inside = AsyncDriver(connect_async(store.url)), Limiter(3), []  # type: ignore[var-annotated]
        found = await asyncio.gather(*(driver.run(visits(limiter, inside)) for _ in range(20)))
        await driver.close()
        return found

    assert max(asyncio.run(asked())) == 3


def test_without_a_loop(redis: redis_py.Redis) -> None:
    assert run(visits(Limiter(1), []), redis) == 1


def test_many_big_first_registrations_all_come_through(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async def asked() -> int:
        driver, registration_cache = AsyncDriver(connect_async(store.url)), RegistrationCache(time.monotonic)
        registration_cache.limiter = limiter = Watched(BIG_AT_ONCE)
        brokers = [registration(f"b{number}", 0, MANY) for number in range(20)]
        plans = [
            register(KEYS, broker, origin(), registration_cache=registration_cache) for broker in brokers
        ]
        small = register(KEYS, registration("small"), origin(), registration_cache=registration_cache)
        await asyncio.gather(*map(driver.run, plans), driver.run(small))
        refused = registration("b99", 0, MANY, cut=20_000)
        wrong = await asyncio.gather(
            driver.run(register(KEYS, refused, origin(), registration_cache=registration_cache)),
            return_exceptions=True,
        )
        assert isinstance(wrong[0], Exception)
        await driver.close()
        assert limiter.inside == 0
        return limiter.most

    assert asyncio.run(asked()) == BIG_AT_ONCE
    assert len(redis.smembers(KEYS.brokers)) == 21
    check_tables(redis, KEYS)
