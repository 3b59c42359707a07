"""The cached replies to requests, for every transport: found by the compiled code where it is built."""

from access.classes import ALL
from worker.cache.cached_requests import CHECKS_MOST, FRAME_MOST, Answers, CachedRequests

try:
    from worker.transport.epoll import answers as compiled
except ImportError:

    def compiled(
        requests: CachedRequests, data: bytes, now: float, most: int, first: int = 0, rights: int = ALL
    ) -> Answers:
        return requests.answers(data, now, most, first, rights)


__all__ = ["cached_answers"]


def cached_answers(
    requests: CachedRequests, data: bytes, now: float, most: int, first: int = 0, rights: int = ALL
) -> Answers:
    """Return what `CachedRequests.answers` does; registrations, which are longer, are found by that one alone."""
    if _is_long(data, first):
        return requests.answers(data, now, most, first, rights)
    blocks, length, checks = compiled(requests, data, now, most, first, rights)
    first += length
    most -= sum(map(len, blocks))
    if most > 0 and len(checks) < CHECKS_MOST and _is_long(data, first):
        more, longer, due = requests.answers(data, now, most, first, rights)
        return blocks + more, length + longer, checks + due
    return blocks, length, checks


def _is_long(data: bytes, first: int) -> bool:
    return int.from_bytes(data[first : first + 4]) > FRAME_MOST
