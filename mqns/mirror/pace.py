"""A bound on how often something is done."""

import asyncio


class Pace:
    """So many times a second at most, evenly; nothing that was not done is made up for."""

    def __init__(self, per_second: float) -> None:
        self._apart_s = 1 / per_second
        self._next = 0.0

    async def wait(self) -> None:
        """Return when it is the caller's time."""
        now = asyncio.get_running_loop().time()
        at = max(now, self._next)
        self._next = at + self._apart_s
        if at > now:
            await asyncio.sleep(at - now)
