"""Caches of a worker by themselves."""

from collections.abc import Callable

from registry.caching.bounded import Bounded
from worker.cache.cached_requests import CachedReply, CachedRequests, Longer
from worker.cache.views import Key
from worker.counters import Counters


class Routes:
    """What stands for the route cache: `has` says which replies it still has, `evictions` are those evicted."""

    def __init__(self, has: Callable[[CachedReply], bool]) -> None:
        self._has = has
        self.present: Bounded[Key, object] = Bounded(1, lambda *_: 1)
        self.evictions: list[CachedReply] = []

    def has(self, cached: CachedReply) -> bool:
        return self._has(cached)

    def evicted(self, cached: CachedReply) -> None:
        self.evictions.append(cached)


def requests_of(
    has: Callable[[CachedReply], bool] = lambda _: True,
    counters: Counters | None = None,
    limit: int = 1 << 20,
    longer: Longer = lambda *_: None,
) -> CachedRequests:
    """Cached requests of routes that are kept."""
    return CachedRequests(limit, Routes(has), counters or Counters(), longer)
