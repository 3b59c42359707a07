"""When the rights of callers end: what waits for that learns of earlier ends meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf

__all__ = ["Alarm"]


class Alarm:
    """The first of some ends, in Unix seconds; `clock` gives these, and `sleep` waits for so many of them."""

    def __init__(self, clock: Callable[[], float], sleep: Callable[[float], Awaitable[object]]) -> None:
        self._clock = clock
        self._sleep = sleep
        self._first = self._wakes = inf
        self._sooner = asyncio.Event()

    def set(self, end: float | None) -> None:
        """Forget all ends but this one."""
        self._first = inf
        self.add(end)

    def add(self, end: float | None) -> None:
        """Note one more end; None is none."""
        if end is not None and end < self._first:
            self._first = end
            if end < self._wakes:
                self._sooner.set()

    def is_over(self, now: float) -> bool:
        """Return whether the first end has come."""
        return now >= self._first

    async def wait(self, most_s: float) -> None:
        """Return in so many seconds, or when the first end comes, one that is added meanwhile, too."""
        latest = self._clock() + most_s
        while (left_s := (until := min(latest, self._first)) - self._clock()) > 0:
            self._wakes = until
            self._sooner.clear()
            slept = asyncio.ensure_future(self._sleep(left_s))
            sooner = asyncio.ensure_future(self._sooner.wait())
            try:
                done, _ = await asyncio.wait((slept, sooner), return_when=asyncio.FIRST_COMPLETED)
            finally:
                slept.cancel()
                sooner.cancel()
            if slept in done:
                return
