"""Which known callers were refused what in this process, until that is reported in the store."""

from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple

from access.classes import AccessClass

__all__ = ["MOST", "Denials", "Denied", "Refusals"]

MOST: Final = 1_000
"""Callers and operations that are remembered; what others are refused is counted in metrics alone."""


class Denied(NamedTuple):
    """What has an entry a minute: an actor, and what it asked for, a request code or method and route."""

    actor: str
    operation: str


class Refusals(NamedTuple):
    """How often it was refused since the last report, what it needed last, and from where it came."""

    times: int
    of_class: AccessClass
    peer: str


class _Pending(NamedTuple):
    """Refusals to report not before this time; of those that the store has already there are 0."""

    refusals: Refusals
    due_s: float = 0.0


class Denials:
    """Threads may use it together. `clock` is in seconds and never goes back."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._pending: dict[Denied, _Pending] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def note(self, denied: Denied, of_class: AccessClass, peer: str) -> None:
        """Note that an actor was refused an operation."""
        with self._lock:
            self._add({denied: Refusals(1, of_class, peer)})

    def take(self) -> Mapping[Denied, Refusals]:
        """Return what is to be reported now, and forget it."""
        now = self._clock()
        with self._lock:
            taken = {
                denied: pending.refusals
                for denied, pending in self._pending.items()
                if pending.refusals.times or pending.due_s <= now
            }
            for denied in taken:
                del self._pending[denied]
        return taken

    def put_back(self, taken: Mapping[Denied, Refusals]) -> None:
        """Note again what was taken and could not be reported."""
        with self._lock:
            self._add(taken)

    def reported(self, taken: Mapping[Denied, Refusals], waits_ms: Iterable[int]) -> None:
        """Note what came of each that was taken: after how many ms the store wants to be asked again, 0 for never."""
        now = self._clock()
        with self._lock:
            for (denied, refusals), wait_ms in zip(taken.items(), waits_ms, strict=True):
                if wait_ms and denied not in self._pending:
                    self._pending[denied] = _Pending(refusals._replace(times=0), now + wait_ms / 1000)

    def _add(self, more: Mapping[Denied, Refusals]) -> None:
        for denied, refusals in more.items():
            before = self._pending.get(denied)
            if before is not None:
                refusals = refusals._replace(times=before.refusals.times + refusals.times)
            elif len(self._pending) >= MOST:
                continue
            self._pending[denied] = _Pending(refusals)
