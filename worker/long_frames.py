"""Memory for long frames of all connections of a worker together: of those that are read, and of the requests that came
in them until they are answered. When there is none, the next are not read on, in the order in which they began."""

from collections.abc import Callable
from typing import Final, Protocol

__all__ = ["BYTES_MOST", "LONG", "READ_S", "LongFrames", "Reading"]

LONG: Final = 64 << 10
"""Bytes beyond which a frame or a body counts: one that no single read takes whole."""
BYTES_MOST: Final = 32 << 20
READ_S: Final = 10.0
"""Seconds for the rest of a long frame while others wait; a broker's 1.3 MB take milliseconds."""


class Reading(Protocol):
    """Who reads a long frame: `worker.connection.Connection`."""

    def read_on(self) -> None:
        """There is room now."""

    def abort(self, reason: str) -> None:
        """End at once."""


class LongFrames:
    """`clock` gives seconds."""

    def __init__(self, clock: Callable[[], float], most: int = BYTES_MOST, read_s: float = READ_S) -> None:
        self._clock = clock
        self._most = most
        self._read_s = read_s
        self._taken = 0
        self._reading: dict[Reading, tuple[int, float]] = {}  # bytes, and when it has to be whole
        self._waiting: dict[Reading, int] = {}

    def begin(self, reading: Reading, length: int) -> bool:
        """A frame of so many bytes has begun; whether to read on now rather than when told."""
        if self._waiting or not self._has_room(length):
            self._waiting[reading] = length
            return False
        self._admit(reading, length)
        return True

    def end(self, reading: Reading) -> None:
        """It is whole, or will never be."""
        self._waiting.pop(reading, None)
        self.free(self._reading.pop(reading, (0, 0.0))[0])

    def hold(self, length: int) -> None:
        """A request of so many bytes is under way."""
        self._taken += length

    def free(self, length: int) -> None:
        """It is answered."""
        self._taken -= length
        while self._waiting:
            reading, wanted = next(iter(self._waiting.items()))
            if not self._has_room(wanted):
                return
            del self._waiting[reading]
            self._admit(reading, wanted)
            reading.read_on()

    def late(self) -> list[Reading]:
        """Whose rest has taken too long while others wait."""
        now = self._clock()
        return [reading for reading, (_, due) in self._reading.items() if due < now] if self._waiting else []

    def _has_room(self, length: int) -> bool:
        """A single one always has."""
        return not self._taken or self._taken + length <= self._most

    def _admit(self, reading: Reading, length: int) -> None:
        self._taken += length
        self._reading[reading] = length, self._clock() + self._read_s
