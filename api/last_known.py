"""A list of addresses that is read now and then, and stays as it was while it cannot be read."""

import logging
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple

from redis.exceptions import RedisError

from registry.errors import StoreUnavailable
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["Addresses", "LastKnown"]

Addresses = tuple[str, ...]
FAILURES: Final = (StoreUnavailable, RedisError, OSError)
log = RateLimitedLog(logging.getLogger(__name__), 60.0)


class _Read(NamedTuple):
    """A list, and until when it is not read again."""

    addresses: Addresses
    until_s: float


class LastKnown:
    """The list that `read` returned last, in this process. Many clients ask at the same moment: one thread at a time
    reads, every `every_s` at most, and the others have the list before meanwhile. `at_first` is the list until one
    could be read, `what` names it in the log."""

    def __init__(
        self,
        what: str,
        read: Callable[[], Addresses],
        every_s: float,
        at_first: Addresses = (),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._what = what
        self._read = read
        self._every_s = every_s
        self._at_first = at_first
        self._clock = clock
        self._lock = Lock()
        self._last: _Read | None = None

    def __call__(self) -> Addresses:
        """Return it; `at_first` if none could be read."""
        last = self._last
        if last is not None and (self._clock() < last.until_s or self._lock.locked()):
            return last.addresses
        with self._lock:
            last = self._last
            if last is None or self._clock() >= last.until_s:
                addresses = self._renewed(self._at_first if last is None else last.addresses)
                last = self._last = _Read(addresses, self._clock() + self._every_s)
            return last.addresses

    def _renewed(self, before: Addresses) -> Addresses:
        try:
            return self._read()
        except FAILURES as error:
            log.warning(
                "%s cannot be read: %s; clients are answered as before: %s",
                self._what,
                error,
                ";".join(before) or "nothing yet",
            )
            return before
