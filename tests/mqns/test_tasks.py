"""Periodic jobs, and bounded concurrency."""

import asyncio

import pytest

from mqns.tasks import at_fixed_rate, run_concurrently
from testbed.virtual_time import now, run


def runs_until(s: float, *, takes_s: list[float], first_s: float = 1, every_s: float = 10) -> list[float]:
    """When the job was begun; its n-th run takes the n-th time, the last one for all further."""
    begun: list[float] = []

    async def job() -> None:
        begun.append(now())
        await asyncio.sleep(takes_s[min(len(begun), len(takes_s)) - 1])

    async def play() -> None:
        timer = asyncio.create_task(at_fixed_rate(job, first_s, every_s))
        await asyncio.sleep(s)
        timer.cancel()
        await asyncio.wait([timer])

    run(play())
    return begun


def test_a_rate_does_not_drift() -> None:
    assert runs_until(45, takes_s=[0, 3, 9.5]) == [1, 11, 21, 31, 41]


def test_what_comes_due_meanwhile_is_left_out() -> None:
    assert runs_until(75, takes_s=[0, 25, 0]) == [1, 11, 41, 51, 61, 71]
    assert runs_until(45, takes_s=[10, 0]) == [1, 11, 21, 31, 41]


def test_an_error_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    begun: list[float] = []

    async def job() -> None:
        begun.append(now())
        raise ValueError("odd")

    async def play() -> None:
        timer = asyncio.create_task(at_fixed_rate(job, 0, 10))
        await asyncio.sleep(25)
        timer.cancel()
        await asyncio.wait([timer])

    run(play())
    assert begun == [0, 10, 20]
    assert caplog.text.count("ValueError: odd") == 3


def test_things_are_done_run_concurrently_but_not_more_than_so_many_at_once() -> None:
    under_way = 0
    most = 0
    done = []

    async def job(item: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(item)
        under_way -= 1
        done.append((now(), item))

    async def play() -> None:
        await run_concurrently(job, [5, 1, 1, 1, 1], 2)
        await run_concurrently(job, [], 2)

    run(play())
    assert most == 2
    assert done == [(1, 1), (2, 1), (3, 1), (4, 1), (5, 5)]


def test_results_are_in_the_order_of_the_items() -> None:
    ended: list[int] = []

    async def ask(number: int) -> int:
        await asyncio.sleep(1)
        ended.append(number)
        return -number

    async def scene() -> None:
        numbers = range(6)
        counted: list[None] = []
        assert await run_concurrently(ask, numbers, 3, lambda: counted.append(None)) == [
            -number for number in numbers
        ]
        assert (now(), len(counted)) == (2, 6)

    run(scene())


def test_the_first_error_cancels_the_others() -> None:
    async def ask(number: int) -> None:
        await asyncio.sleep(number)
        raise ValueError(number)

    async def scene() -> None:
        with pytest.raises(ValueError, match="1"):
            await run_concurrently(ask, [3, 1, 2], 3)
        assert now() == 1

    run(scene())
