"""The cached replies to requests, for every transport: found by the compiled code where it is built."""

from worker.cache.cached_requests import CHECKS_MOST, FRAME_MOST, Answers, CachedRequests

try:
    from worker.transport.epoll import answers as compiled
except ImportError:

    def compiled(requests: CachedRequests, data: bytes, now: float, most: int) -> Answers:
        return requests.answers(data, now, most)


__all__ = ["cached_answers"]


def cached_answers(requests: CachedRequests, data: bytes, now: float, most: int) -> Answers:
    """Return what `CachedRequests.answers` does; registrations, which are longer, are found by that one alone."""
    if int.from_bytes(data[:4]) > FRAME_MOST:
        return requests.answers(data, now, most)
    blocks, length, checks = compiled(requests, data, now, most)
    most -= sum(map(len, blocks))
    if len(data) - length > FRAME_MOST and most > 0 and len(checks) < CHECKS_MOST:
        more, longer, due = requests.answers(data[length:], now, most)
        return blocks + more, length + longer, checks + due
    return blocks, length, checks
