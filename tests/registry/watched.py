"""A limiter that counts those that have acquired it."""

from collections.abc import Callable
from functools import partial

from registry.long_work.limiter import Limiter


class Watched(Limiter):
    """Knows how many were in it at most."""

    inside = most = 0

    def acquire(self, acquired: Callable[[], object]) -> None:
        super().acquire(partial(self._acquired, acquired))

    def release(self) -> None:
        self._count(-1)
        super().release()

    def _acquired(self, acquired: Callable[[], object]) -> None:
        self._count(1)
        acquired()

    def _count(self, by: int) -> None:
        self.inside += by
        self.most = max(self.most, self.inside)
