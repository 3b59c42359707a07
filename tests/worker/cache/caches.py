"""Caches of a worker by themselves."""

from collections.abc import Callable

from worker.cache.cached_requests import CachedReply, CachedRequests
from worker.counters import Counters
from worker.views import Key


class Routes:
    """What stands for the route cache: `has` says which replies it still has, `evictions` are those evicted."""

    crowded = False

    def __init__(self, has: Callable[[CachedReply], bool]) -> None:
        self._has = has
        self.evictions: list[CachedReply] = []

    def has(self, cached: CachedReply) -> bool:
        return self._has(cached)

    def use(self, key: Key) -> None:
        """It keeps no order."""

    def evicted(self, cached: CachedReply) -> None:
        self.evictions.append(cached)


def requests_of(
    has: Callable[[CachedReply], bool] = lambda _: True,
    counters: Counters | None = None,
    limit: int = 1 << 20,
) -> CachedRequests:
    """Cached requests of routes that are kept."""
    return CachedRequests(limit, Routes(has), counters or Counters())
