"""What a worker counts about itself: plain integers, so that counting costs the hot path nothing."""


class Counters:
    """Ever growing; a reader takes differences."""

    __slots__ = (
        "cache_coalesced",
        "cache_discarded",
        "cache_dropped",
        "cache_hits",
        "cache_misses",
        "cache_negative_hits",
        "cache_oversize",
        "known_frames",
        "overloads",
        "probes_reachable",
        "probes_unreachable",
        "resets",
        "stale_serves",
    )

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, 0)

    cache_coalesced: int
    cache_discarded: int
    cache_dropped: int
    cache_hits: int
    cache_misses: int
    cache_negative_hits: int
    cache_oversize: int
    known_frames: int
    overloads: int
    probes_reachable: int
    probes_unreachable: int
    resets: int
    stale_serves: int

    def snapshot(self) -> dict[str, int]:
        """All of them by name."""
        return {name: getattr(self, name) for name in self.__slots__}
