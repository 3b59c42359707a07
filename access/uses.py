"""Which credentials proved a principal in this process, until that is written to the store."""

from collections.abc import Callable, Mapping
from threading import Lock
from time import monotonic
from typing import Final

__all__ = ["MOST", "Uses"]

MOST: Final = 20_000
"""Credentials that are remembered while the store is away; of more, those go that were used longest ago."""


class Uses:
    """Threads may use it together. `clock` is in seconds and never goes back."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._at: dict[str, float] = {}  # the one that was used longest ago first

    def __len__(self) -> int:
        return len(self._at)

    def note(self, *credentials: str) -> None:
        """Note that these credentials have proved their principals just now, by their ids."""
        with self._lock:
            for credential in credentials:
                self._at.pop(credential, None)
                self._at[credential] = self._clock()
            self._bound()

    def take(self) -> Mapping[str, float]:
        """Return when each was used last by `clock`, and forget that."""
        with self._lock:
            taken, self._at = self._at, {}
        return taken

    def put_back(self, taken: Mapping[str, float]) -> None:
        """Note again what was taken and could not be written."""
        with self._lock:
            self._at = {**{id: at for id, at in taken.items() if id not in self._at}, **self._at}
            self._bound()

    def ages_ms(self, taken: Mapping[str, float]) -> dict[str, int]:
        """Return how long ago each was used that was taken."""
        now = self._clock()
        return {id: int((now - at) * 1000) for id, at in taken.items()}

    def _bound(self) -> None:
        while len(self._at) > MOST:
            del self._at[next(iter(self._at))]
