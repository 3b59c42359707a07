"""A room with few places, for work that is slow when many do it at once."""

from collections import deque
from collections.abc import Callable


class Room:
    """Lets in as many as it has places, the others in the order in which they came. Of one event loop or thread."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[Callable[[], object]] = deque()

    def enter(self, entered: Callable[[], object]) -> None:
        """`entered` is called once there is a place, perhaps at once; `leave` must follow."""
        if self._free:
            self._free -= 1
            entered()
        else:
            self._waiting.append(entered)

    def leave(self) -> None:
        """Give the place to the next."""
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._free += 1
