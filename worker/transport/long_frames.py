"""Memory for long frames of all connections of a worker together: of those that are read, and of the requests that came
in them until they are answered. Where it is short, frames wait in the order in which they began."""

from collections.abc import Callable
from typing import Final, Protocol

__all__ = ["BYTES_MOST", "LONG", "READ_S", "LongFrameReader", "LongFrames"]

LONG: Final = 64 << 10
"""Bytes beyond which a frame or a body counts: one that no single read takes whole."""
BYTES_MOST: Final = 32 << 20
READ_S: Final = 10.0
"""Seconds for the rest of a long frame while others wait; a broker's 1.3 MB take milliseconds."""


class LongFrameReader(Protocol):
    """The reader of a long frame: `worker.transport.request_reader.RequestReader`."""

    def read_on(self) -> None:
        """Resume: there is memory now."""

    def abort(self, reason: str) -> None:
        """End at once."""


class LongFrames:
    """A limiter of bytes; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float], most: int = BYTES_MOST, read_s: float = READ_S) -> None:
        self._clock = clock
        self._most = most
        self._read_s = read_s
        self._taken = 0
        self._reading: dict[LongFrameReader, tuple[int, float]] = {}  # bytes, and when it has to be whole
        self._waiting: dict[LongFrameReader, int] = {}

    def begin(self, reading: LongFrameReader, length: int) -> bool:
        """Note that a frame of so many bytes has begun; False if its reader has to wait for `read_on`."""
        if self._waiting or not self._fits(length):
            self._waiting[reading] = length
            return False
        self._admit(reading, length)
        return True

    def end(self, reading: LongFrameReader) -> None:
        """Note that the frame is whole, or will never be."""
        self._waiting.pop(reading, None)
        self.release(self._reading.pop(reading, (0, 0.0))[0])

    def reserve(self, length: int) -> None:
        """Reserve the bytes of a request that is under way."""
        self._taken += length

    def release(self, length: int) -> None:
        """Release the bytes of an answered request, and admit readers that wait."""
        self._taken -= length
        while self._waiting:
            reading, wanted = next(iter(self._waiting.items()))
            if not self._fits(wanted):
                return
            del self._waiting[reading]
            self._admit(reading, wanted)
            reading.read_on()

    def late(self) -> list[LongFrameReader]:
        """Return readers whose rest has taken too long while others wait."""
        now = self._clock()
        return [reading for reading, (_, due) in self._reading.items() if due < now] if self._waiting else []

    def _fits(self, length: int) -> bool:
        """Whether there is memory for a frame; a single one always fits."""
        return not self._taken or self._taken + length <= self._most

    def _admit(self, reading: LongFrameReader, length: int) -> None:
        self._taken += length
        self._reading[reading] = length, self._clock() + self._read_s
