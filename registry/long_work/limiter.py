"""A limiter of work that is slow when much of it runs at once."""

from collections import deque
from collections.abc import Callable


class Limiter:
    """At most `places` callers at once, the next in the order in which they asked. Of one event loop or thread."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[Callable[[], object]] = deque()

    def acquire(self, acquired: Callable[[], object]) -> None:
        """`acquired` is called once a place is free, perhaps at once; `release` must follow."""
        if self._free:
            self._free -= 1
            acquired()
        else:
            self._waiting.append(acquired)

    def release(self) -> None:
        """Give the place to the next caller in line."""
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._free += 1
