"""An event loop whose clock jumps to the next timer when nothing else is to be done.

A test of schedules of hours takes milliseconds, and always the same: nothing in it sleeps."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
START_S = 1000.0
"""The clock's time at the beginning."""
CALLBACKS = 20
"""Iterations of the loop in which callbacks and nested generators of ended tasks may end."""


class Stuck(AssertionError):
    """The loop has no timer, nothing ready and no byte on a socket."""


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that moves the clock where the loop would sleep."""

    now = START_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if not events:
            if timeout is None:
                raise Stuck("nothing can happen any more")
            self.now += max(timeout, 0)
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop for code without sockets and threads, for which it would not wait."""

    def __init__(self) -> None:
        self._virtual = _JumpingSelector()
        self.complaints: list[str] = []
        super().__init__(self._virtual)
        self.set_exception_handler(lambda _, context: self.complaints.append(_complaint(context)))

    def time(self) -> float:
        return self._virtual.now


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine on a virtual clock.

    Raises AssertionError if a task is left, a callback fails, or a task's error is not fetched."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualTimeLoop)
        result = runner.run(_alone(coroutine))
    assert not loop.complaints, loop.complaints
    return result


def now() -> float:
    """Return the seconds since the beginning."""
    return asyncio.get_running_loop().time() - START_S


async def _alone(coroutine: Coroutine[Any, Any, T]) -> T:
    result = await coroutine
    for _ in range(CALLBACKS):
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"left behind: {left}"
    return result


def _complaint(context: dict[str, Any]) -> str:
    return f"{context.get('message')}: {context.get('exception')!r}"
