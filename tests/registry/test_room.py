"""A room with few places, and big registrations that wait for one another in it."""

import asyncio
import time
from collections.abc import Callable
from functools import partial

import redis as redis_py

from launcher.store import EmbeddedStore
from registry.drivers import AsyncDriver, run
from registry.keys import Keys
from registry.plans import Enter, Pause, Plan
from registry.registrar import BIG_AT_ONCE, Registrar
from registry.registration import register
from registry.room import Room
from registry.store import connect_async
from tests.registry.brokers import act, registration
from tests.registry.check_tables import check_tables

KEYS = Keys()
MANY = [f"a-topic-with-a-usual-name-{number:05}" for number in range(1200)]


def test_they_enter_in_the_order_in_which_they_came() -> None:
    room, inside = Room(2), []
    for number in range(5):
        room.enter(lambda number=number: inside.append(number))  # type: ignore[misc]
    assert inside == [0, 1]
    room.leave()
    assert inside == [0, 1, 2]
    for _ in range(4):
        room.leave()
    assert inside == [0, 1, 2, 3, 4]
    room.enter(lambda: inside.append(5))
    room.enter(lambda: inside.append(6))
    room.enter(lambda: inside.append(7))
    assert inside[5:] == [5, 6]


def visits(room: Room, inside: list[int]) -> Plan[int]:
    yield Enter(room)
    inside.append(len(inside))
    most = len(inside)
    yield Pause(0.001)
    inside.pop()
    room.leave()
    return most


def test_on_a_loop_no_more_are_in_it_than_it_has_places(store: EmbeddedStore) -> None:
    async def asked() -> list[int]:
        driver, room, inside = AsyncDriver(connect_async(store.url)), Room(3), []  # type: ignore[var-annotated]
        found = await asyncio.gather(*(driver.run(visits(room, inside)) for _ in range(20)))
        await driver.close()
        return found

    assert max(asyncio.run(asked())) == 3


def test_without_a_loop(redis: redis_py.Redis) -> None:
    assert run(visits(Room(1), []), redis) == 1


class Watched(Room):
    """Knows how many were in it at most."""

    inside = most = 0

    def enter(self, entered: Callable[[], object]) -> None:
        super().enter(partial(self._entered, entered))

    def leave(self) -> None:
        self._count(-1)
        super().leave()

    def _entered(self, entered: Callable[[], object]) -> None:
        self._count(1)
        entered()

    def _count(self, by: int) -> None:
        self.inside += by
        self.most = max(self.most, self.inside)


def test_many_big_first_registrations_all_come_through(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    async def asked() -> int:
        driver, registrar = AsyncDriver(connect_async(store.url)), Registrar(time.monotonic)
        registrar.room = room = Watched(BIG_AT_ONCE)
        brokers = [registration(f"b{number}", 0, MANY) for number in range(20)]
        plans = [register(KEYS, broker, act(), registrar=registrar) for broker in brokers]
        small = register(KEYS, registration("small"), act(), registrar=registrar)
        await asyncio.gather(*map(driver.run, plans), driver.run(small))
        refused = registration("b99", 0, MANY, cut=20_000)
        wrong = await asyncio.gather(
            driver.run(register(KEYS, refused, act(), registrar=registrar)), return_exceptions=True
        )
        assert isinstance(wrong[0], Exception)
        await driver.close()
        assert room.inside == 0
        return room.most

    assert asyncio.run(asked()) == BIG_AT_ONCE
    assert len(redis.smembers(KEYS.brokers)) == 21
    check_tables(redis, KEYS)
