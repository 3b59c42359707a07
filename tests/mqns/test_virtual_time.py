"""testbed/virtual_time.py: a clock that jumps."""

import asyncio
import time

import pytest

from testbed.virtual_time import Stuck, now, run


def test_hours_take_no_time() -> None:
    async def wait() -> float:
        await asyncio.sleep(7200)
        return now()

    began = time.monotonic()
    assert run(wait()) == 7200
    assert time.monotonic() - began < 60


def test_timers_come_in_order_at_their_times() -> None:
    seen: list[tuple[str, float]] = []

    async def tick(name: str, every_s: float) -> None:
        for _ in range(3):
            await asyncio.sleep(every_s)
            seen.append((name, now()))

    async def both() -> None:
        await asyncio.gather(tick("a", 2), tick("b", 5))

    run(both())
    assert seen == [("a", 2), ("a", 4), ("b", 5), ("a", 6), ("b", 10), ("b", 15)]


def test_time_outs_are_those_of_the_clock() -> None:
    async def wait() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        return now()

    assert run(wait()) == 3600


def test_waiting_for_what_never_comes_is_an_error() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        run(wait())


def test_a_task_that_is_left_behind_is_an_error() -> None:
    async def leave() -> set[asyncio.Task[None]]:
        return {asyncio.create_task(asyncio.sleep(1))}

    with pytest.raises(AssertionError, match="left behind"):
        run(leave())


def test_what_fails_in_a_callback_is_an_error() -> None:
    async def plan() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run(plan())
