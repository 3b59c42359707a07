"""Many calls at once."""

import asyncio

import pytest

from client.cli.many import AT_ONCE, each
from tests.harness.virtual_time import now, run


def test_results_come_in_order_and_not_all_at_once() -> None:
    ended: list[int] = []

    async def ask(number: int) -> int:
        await asyncio.sleep(1)
        ended.append(number)
        return -number

    async def scene() -> None:
        numbers = range(2 * AT_ONCE)
        counted: list[None] = []
        assert await each(numbers, ask, lambda: counted.append(None)) == [-number for number in numbers]
        assert (now(), len(counted)) == (2, 2 * AT_ONCE)

    run(scene())


def test_the_first_error_ends_the_others() -> None:
    async def ask(number: int) -> None:
        await asyncio.sleep(number)
        raise ValueError(number)

    async def scene() -> None:
        with pytest.raises(ValueError, match="1"):
            await each([3, 1, 2], ask)
        assert now() == 1

    run(scene())
