"""A registration that goes the straight way leaves the same tables, events and answer as by the long one."""

import asyncio
import os
import secrets
from collections import Counter
from math import inf
from typing import Final

import pytest
import redis as redis_py
from hypothesis import settings

from mqnamesrv.store import EmbeddedStore
from registry import drivers
from registry.long_work import time_slices
from registry.scripts import names_of_scripts, script
from tests.registry.two_ways import scenarios
from tests.registry.two_ways.exits import EXITS
from tests.registry.two_ways.history import History
from tests.registry.two_ways.sides import TwoWays

NIGHTLY: Final = settings.get_current_profile_name() == "nightly"
STEPS: Final = 100_000 if NIGHTLY else 600
OF_A_HISTORY: Final = 100
OF_A_LARGE_ONE: Final = 20
REFUSING_HISTORIES: Final = 100 if NIGHTLY else 3


@pytest.fixture(autouse=True)
def in_order(redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies come in the order in which scripts ran: over one connection, and of scripts that the store has. No pause
    parts what begins at one moment, which a busy machine would need."""
    monkeypatch.setattr(drivers, "PIPELINES", 1)
    monkeypatch.setattr(time_slices, "SHORT_S", inf)
    for name in names_of_scripts():
        redis.script_load(script(name).source)


@pytest.mark.parametrize("exit_", EXITS)
def test_each_exit_of_the_straight_way_is_taken(
    store: EmbeddedStore, redis: redis_py.Redis, exit_: str
) -> None:
    async def play() -> None:
        async with TwoWays.of(store.url, redis, limits=scenarios.LIMITS[exit_]) as both:
            await scenarios.played(both, scenarios.SCENARIOS[exit_])
        assert both.exits[exit_] > 0, both.exits
        if exit_ not in scenarios.DAMAGED:
            both.check()

    asyncio.run(play())


@pytest.mark.timeout(7200 if NIGHTLY else 300)
def test_random_registrations_end_alike_both_ways(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    """A change is judged by the same histories, each night (`--hypothesis-profile=nightly`) by others. TWO_WAYS_HISTORY
    names one to play alone."""
    series = secrets.token_hex(4) if NIGHTLY else "suite"
    only = os.environ.get("TWO_WAYS_HISTORY")
    exits, done, begun = Counter[str](), 0, 0
    while done < (1 if only else STEPS):
        begun += 1
        history = History(only or f"{series}-{begun}")
        try:
            exits += asyncio.run(played(history, store, redis))
        except Exception as error:
            raise AssertionError(f"history {history.seed}, step {history.steps}: {error}") from error
        done += history.steps
        redis.flushall()
    print(f"{done} steps in {begun} histories, series {series}: {dict(sorted(exits.items()))}")


def test_they_end_alike_where_conflicts_of_identities_are_refused(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async def play(number: int) -> int:
        history = History(f"refusing-{number}")
        async with TwoWays.of(store.url, redis, limits=history.limits, exclusive=True) as both:
            await history.play(both, OF_A_HISTORY)
        return both.conflicts

    conflicts = 0
    for number in range(REFUSING_HISTORIES):
        conflicts += asyncio.run(play(number))
        redis.flushall()
    assert conflicts > 0


async def played(history: History, store: EmbeddedStore, redis: redis_py.Redis) -> Counter[str]:
    async with TwoWays.of(store.url, redis, limits=history.limits) as both:
        await history.play(both, OF_A_LARGE_ONE if history.is_large else OF_A_HISTORY)
    return both.exits
