"""What was seen just now, of a stream in which one operation may have many entries."""

from collections.abc import Hashable
from typing import Final

__all__ = ["Recent"]

MOST: Final = 1000


class Recent:
    """The last thousand keys that came."""

    def __init__(self) -> None:
        self._keys: dict[Hashable, None] = {}

    def is_new(self, key: Hashable) -> bool:
        """Note a key, and return whether it has not come just now."""
        new = self._keys.pop(key, self) is self
        self._keys[key] = None
        if len(self._keys) > MOST:
            del self._keys[next(iter(self._keys))]
        return new
