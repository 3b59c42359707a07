"""Many calls at once, but not all."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

K = TypeVar("K")
T = TypeVar("T")
AT_ONCE: Final = 64


async def each(
    items: Sequence[K], ask: Callable[[K], Awaitable[T]], done: Callable[[], None] = lambda: None
) -> list[T]:
    """What `ask` gives for each item, in their order; `done` is called after each.

    The first error ends the others."""
    permits = asyncio.Semaphore(AT_ONCE)

    async def one(item: K) -> T:
        async with permits:
            result = await ask(item)
        done()
        return result

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
