"""Requests that wait for another time slice: few of them are taken in one iteration of the event loop, over all
connections."""

from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final

__all__ = ["SLICE_S", "TimeSlices"]

SLICE_S: Final = 0.001
"""Time for the requests of one connection, and for all that wait, before the other connections are served."""


class TimeSlices:
    """Time slices of all connections, in the order in which they are due.

    Were all of them taken in one iteration, a peer that sends a request now and then would wait until every connection
    with many had one, and again for each of these that is read before its own."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._due: deque[Callable[[], None]] = deque()
        self._scheduled = False

    @property
    def waiting(self) -> bool:
        """Whether slices are due."""
        return bool(self._due)

    def add(self, take: Callable[[], None]) -> None:
        """Have a slice taken soon."""
        self._due.append(take)
        self._schedule()

    def _schedule(self) -> None:
        if self._due and not self._scheduled:
            self._scheduled = True
            self._call_soon(self._take)

    def _take(self) -> None:
        self._scheduled = False
        until = perf_counter() + SLICE_S
        try:
            for _ in range(len(self._due)):
                self._due.popleft()()
                if perf_counter() >= until:
                    break
        finally:
            self._schedule()
