"""What a worker counts about itself: plain integers, so that counting costs the hot path nothing."""


class Counters:
    """Ever growing; a reader takes differences."""

    def __init__(self) -> None:
        self.cache_hits = 0
        self.cache_misses = 0
        self.cache_negative_hits = 0
        self.cached_requests = 0
        self.list_fills = 0
        self.list_hits = 0
        self.overloads = 0
        self.probes_reachable = 0
        self.resets = 0
        self.stale_serves = 0
