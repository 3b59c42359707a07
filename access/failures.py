"""Bad proofs by where they come from: a host that guesses is shut out for a while."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Final

from registry.options.networks import link_of

__all__ = ["MOST", "SHUT_S", "WITHIN_S", "Failures"]

MOST: Final = 10
"""Bad proofs of a host within WITHIN_S after which it is shut out."""
WITHIN_S: Final = 60.0
SHUT_S: Final = 60.0
"""For how long."""
HOSTS_MOST: Final = 10_000
"""Hosts that are remembered, the last ones: a guess is worth nothing to a peer that needs a new address for it."""


class Failures:
    """Of one process, whose threads may use it together. An IPv6 host is its /64. `clock` is in seconds and never goes
    back."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._times: OrderedDict[str, list[float]] = OrderedDict()
        self._shut: OrderedDict[str, float] = OrderedDict()  # until when; the first one is over first

    def add(self, host: str) -> None:
        """Count a bad proof."""
        now, host = self._clock(), link_of(host)
        with self._lock:
            times = [at for at in self._times.pop(host, ()) if now - at < WITHIN_S]
            times.append(now)
            if len(times) >= MOST:
                self._shut.pop(host, None)
                self._shut[host] = now + SHUT_S
            else:
                self._times[host] = times
            for hosts in (self._times, self._shut):
                if len(hosts) > HOSTS_MOST:
                    hosts.popitem(last=False)

    def shut_s(self, host: str) -> float:
        """Return for how many seconds a host is shut out still; 0 if it is not."""
        if not self._shut:
            return 0.0
        now = self._clock()
        with self._lock:
            while self._shut and (first := next(iter(self._shut.items())))[1] <= now:
                del self._shut[first[0]]
            return max(0.0, self._shut.get(link_of(host), now) - now)
