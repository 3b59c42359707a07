"""Rates of callers, in memory and in the store: the same answers for the same times."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.drivers import run
from registry.keys import Keys
from registry.plans import Origin
from registry.rate import ENTRY_BYTES, Rate, RateMeter, acquire_write
from registry.scripts import script
from registry.store.connect import connect

KEYS = Keys()
RATES = [Rate(1, 1), Rate(3, 3), Rate(6, 6), Rate(7, 14), Rate(10, 10), Rate(50, 100), Rate(999, 999)]


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def write(store: Any, rate: Rate, caller: str = "a") -> bool:
    return run(acquire_write(KEYS, caller, rate, Origin("op", "http:a")), store)


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_a_burst_and_then_the_rate(rate: Rate) -> None:
    clock = Clock()
    meter = RateMeter(rate, clock=clock)
    assert [meter.admits("a") for _ in range(rate.burst + 5)] == [True] * rate.burst + [False] * 5
    assert meter.admits("b")
    admitted = 0
    for _ in range(10_000):
        clock.now_s += 0.001
        admitted += meter.admits("a")
    assert admitted == pytest.approx(10 * rate.per_second, abs=1)
    clock.now_s += 60
    assert [meter.admits("a") for _ in range(rate.burst + 1)] == [True] * rate.burst + [False]


def test_threads_count_together() -> None:
    meter = RateMeter(Rate(1, 100), clock=Clock())
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda _: meter.admits("a"), range(400))) == 100


def test_memory_is_bounded_and_the_one_silent_longest_is_forgotten() -> None:
    meter = RateMeter(Rate(1, 1), memory_bytes=100 * (ENTRY_BYTES + 4), clock=Clock())
    for number in range(1000, 2000):
        assert meter.admits(str(number))
    assert meter.admits("1000")
    assert not meter.admits("1999")


@pytest.mark.parametrize("rate", RATES[:6], ids=str)
def test_the_store_counts_for_all_processes(store: EmbeddedStore, redis: redis_py.Redis, rate: Rate) -> None:
    with connect(store.url) as other:
        began_s = time.monotonic()
        admitted = sum(write(store, rate) for _ in range(rate.burst * 2) for store in (redis, other))
        beside = (time.monotonic() - began_s) * rate.per_second
        assert rate.burst <= admitted <= rate.burst + beside + 1
        assert write(redis, rate, "b")


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_a_burst_is_whole_within_one_millisecond_of_the_store(redis: redis_py.Redis, rate: Rate) -> None:
    """The time of the script stands, and that of its key, which Redis ends by its own clock, has no end."""
    source = script("acquire_write").source
    for measured, fixed in {"= now_ms(),": "= 1795772945594,", ', "PX", math.ceil(left)': ""}.items():
        assert measured in source
        source = source.replace(measured, fixed)
    arguments = (1, KEYS.http_writes("a"), f"{rate.interval_ms:.6f}", rate.burst)
    admitted = [redis.eval(source, *arguments) for _ in range(rate.burst + 2)]
    assert admitted == [1] * rate.burst + [0, 0]


def test_a_key_lasts_until_its_bucket_is_empty(redis: redis_py.Redis) -> None:
    write(redis, Rate(10, 10))
    assert 0 < redis.pttl(KEYS.http_writes("a")) <= 100


@pytest.mark.parametrize("text", ["99999999999999", "x", "-1", "inf", "nan", ""])
def test_a_value_that_none_of_ours_has_written_locks_no_caller_out(redis: redis_py.Redis, text: str) -> None:
    """The clock of the store may go back, too."""
    redis.set(KEYS.http_writes("a"), text)
    assert write(redis, Rate(1, 1))
    assert not write(redis, Rate(1, 1))


def test_a_key_of_another_type_is_deleted(redis: redis_py.Redis) -> None:
    redis.hset(KEYS.http_writes("a"), "x", "y")
    assert write(redis, Rate(1, 1))
    assert redis.type(KEYS.http_writes("a")) == "string"
