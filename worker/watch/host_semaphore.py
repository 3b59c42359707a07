"""A semaphore that hosts share: none waits behind all that another one asked for."""

import asyncio
import logging
from collections import Counter
from typing import Final

from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["WAITING_MOST", "HostSemaphore"]

WAITING_MOST: Final = 4096
"""Keys of one host that may wait; brokers of a whole namespace fit."""

log = RateLimitedLog(logging.getLogger(__name__))

_Waiters = dict[str, asyncio.Future[bool]]


class HostSemaphore:
    """Is held `most` times at once; next by the host that holds it least, for the key of it that waited longest."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._held = Counter[str]()
        self._waiters: dict[str, _Waiters] = {}  # of each host, by key

    async def acquire(self, host: str, key: str) -> bool:
        """Wait for it; `release` must follow.

        False, and not acquired, if the same key asks again meanwhile, or too many of the host wait already."""
        if self._free:
            self._hold(host)
            return True
        waiters = self._waiters.setdefault(host, {})
        if (before := waiters.pop(key, None)) is not None:
            _wake(before, acquired=False)
        elif len(waiters) >= WAITING_MOST:
            log.warning(
                "%d brokers of host %s wait for a probe: more that lost their connection are left to their leases; "
                "find out what registers and closes there",
                len(waiters),
                host,
            )
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waiters[key] = waiter
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._forget(host, key, waiter)
            elif waiter.result():
                self.release(host)
            raise

    def release(self, host: str) -> None:
        """Let the next one have it."""
        self._free += 1
        while self._waiters and self._free:  # what is released counts once more, so that hosts alternate
            following = min(self._waiters, key=self._held.__getitem__)
            key, waiter = next(iter(self._waiters[following].items()))
            self._forget(following, key, waiter)
            if _wake(waiter, acquired=True):
                self._hold(following)
        self._held[host] -= 1
        if not self._held[host]:
            del self._held[host]

    def _hold(self, host: str) -> None:
        self._free -= 1
        self._held[host] += 1

    def _forget(self, host: str, key: str, waiter: asyncio.Future[bool]) -> None:
        waiters = self._waiters.get(host, {})
        if waiters.get(key) is waiter:
            del waiters[key]
            if not waiters:
                del self._waiters[host]


def _wake(waiter: asyncio.Future[bool], *, acquired: bool) -> bool:
    """Wake a waiter; return False if it waits no more."""
    if waiter.done():
        return False
    waiter.set_result(acquired)
    return True
