"""The clock of a history, which a test moves, for all that judges by the time of day."""

import asyncio
from time import time
from typing import Final

TURNS: Final = 20
"""Of the loop, within which a sleeping task learns of an end that comes sooner; real time leaves it as many."""


class Clock:
    """Seconds since 1970, and so of a clock that never goes back."""

    def __init__(self) -> None:
        self.now = float(int(time()))
        self._sleeper: tuple[float, asyncio.Event] | None = None
        self._asleep = asyncio.Event()

    def read(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Return once the clock has moved so far. One at a time sleeps."""
        self._sleeper = self.now + seconds, asyncio.Event()
        self._asleep.set()
        await self._sleeper[1].wait()

    async def move(self, seconds: float) -> None:
        """Go on, and return when what woke by that sleeps again."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
        self.now += seconds
        while self._sleeper is not None and self._sleeper[0] <= self.now:
            self._asleep.clear()
            self._sleeper[1].set()
            await self._asleep.wait()

    async def until_asleep(self) -> None:
        """Return once it sleeps, which it does when it has begun."""
        await self._asleep.wait()
