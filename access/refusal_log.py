"""Log lines of refused requests, so few that no peer can fill the disk with them."""

import logging
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple

from access.classes import AccessClass
from registry.options.networks import network_of

__all__ = ["EVERY_S", "NETWORKS_MOST", "RefusalLog"]

EVERY_S: Final = 60.0
NETWORKS_MOST: Final = 100
"""Networks and classes that have lines of their own within EVERY_S; all others have one together."""


class _Source(NamedTuple):
    """What has a line of its own."""

    network: str
    of_class: AccessClass


ELSEWHERE: Final = _Source("other networks", AccessClass(0))


class _Unlogged:
    """When the next line may come, and how many refusals it has to count beside its own."""

    __slots__ = ("count", "due_s")

    def __init__(self, due_s: float) -> None:
        self.due_s = due_s
        self.count = 0


class RefusalLog:
    """A line at most in EVERY_S for each /24, or /64 of IPv6, and class; it counts those that had none.

    Threads may use it together. Memory is bounded by NETWORKS_MOST."""

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = monotonic) -> None:
        self._log = log
        self._clock = clock
        self._lock = Lock()
        self._sources: dict[_Source, _Unlogged] = {}

    def refused(self, host: str, of_class: AccessClass, remark: str, *, answered: bool = False) -> None:
        """Log that a request of a class from a host was refused, with this remark; `answered`: it only would be, as
        accessMode=observe has it."""
        with self._lock:
            network, more = self._due(network_of(host), of_class)
        if more is None:
            return
        self._log.warning(
            "%s%s%s; docs/access.md says how to admit callers that are yours",
            remark,
            ", answered all the same (accessMode=observe)" if answered else "",
            f", and {more} more from {network}" if more else "",
        )

    def _due(self, network: str, of_class: AccessClass) -> tuple[str, int | None]:
        """Return where the refusal is counted, and how many were before; None if it is not to be logged."""
        now_s = self._clock()
        source = _Source(network, of_class)
        if source not in self._sources and len(self._sources) >= NETWORKS_MOST:
            self._drop_old(now_s)
            if len(self._sources) >= NETWORKS_MOST:
                source = ELSEWHERE
        unlogged = self._sources.setdefault(source, _Unlogged(now_s))
        if now_s < unlogged.due_s:
            unlogged.count += 1
            return source.network, None
        more, unlogged.count, unlogged.due_s = unlogged.count, 0, now_s + EVERY_S
        return source.network, more

    def _drop_old(self, now_s: float) -> None:
        """Forget sources that were silent since their next line was due; what they still count, others' line does."""
        old = [source for source, unlogged in self._sources.items() if unlogged.due_s <= now_s]
        left = sum(self._sources.pop(source).count for source in old)
        if left:
            self._sources.setdefault(ELSEWHERE, _Unlogged(now_s)).count += left
