"""Memory for incomplete frames of all connections of a worker together, and for requests until they are answered.

Bytes count once they have come: what a peer only announces takes nothing from others. While there is room, frames are
read as they come. When there is none, the others wait, and are admitted one by one with room for all that is left of
them: those of hosts with a registered broker first, then whatever is whole soonest. A frame under way has to come at a
minimum rate, so none keeps its memory by standing still; only one that the worker itself does not read may, since its
peer leaves a reply unread. It is never admitted in the place of another, nor holds one up for long.
"""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from rocketmq_remoting.command import Command
from worker.transport.priority_queue import Priority, PriorityQueue

__all__ = ["LONG", "SMALL", "FrameLimits", "FrameMemory", "FrameReading", "request_bytes"]

LONG: Final = 64 << 10
"""Announced bytes beyond which a frame counts from its beginning: no single read takes it whole."""
SMALL: Final = 4 << 10
"""Received bytes of another frame, or of a request, that do not count."""


def request_bytes(command: Command) -> int:
    """Return what a request holds until it is answered: its body, and its fields, twice, since plans copy long ones."""
    ext = command.ext
    return len(command.body) + (2 * sum(map(len, ext.values())) if ext else 0)


class FrameLimits(msgspec.Struct, frozen=True):
    """How the memory is divided, and how slowly a frame may come."""

    known: int = 32 << 20
    """Bytes taken by all frames and requests beyond which frames of known hosts are not read on as they come."""
    unknown: int = 24 << 20
    """The same for hosts that no broker has registered from."""
    host: int = 8 << 20
    """Bytes of the frames of one host beyond which they are not read on as they come."""
    admitted: int = 16 << 20
    """Bytes of admitted frames and of requests under way beyond which no more frames are admitted."""
    waiting: int = 96 << 20
    """Bytes of the frames that wait beyond which one of them is cut off."""
    rate: int = 16 << 10
    """Bytes a second that a frame has to come with; the 1.3 MB of a big broker take milliseconds."""
    measured_s: float = 4.0
    """Seconds over which that is measured."""
    crowded_s: float = 0.5
    """Seconds over which it is measured while others wait."""
    admitted_s: float = 10.0
    """Seconds for an admitted frame while others wait."""
    stood_still_s: float = 1.0
    """A worker that has not looked at its frames for so long stood still itself, and cuts off no peer for that time."""


class FrameReading(Protocol):
    """The reader of a frame: `worker.transport.intake.Intake`."""

    @property
    def host(self) -> str:
        """Return the address of the peer without its port."""

    @property
    def known(self) -> bool:
        """Return whether a broker is registered from there."""

    @property
    def paused(self) -> bool:
        """Return whether it does not read for reasons of its own: no peer is slow then."""

    @property
    def unread(self) -> int:
        """Return how many bytes have come that this worker has not read yet: their peer is not slow."""

    def read_on(self) -> None:
        """Resume: there is memory now."""

    def abort(self, reason: str) -> None:
        """End at once."""


class _Frame:
    __slots__ = ("admitted_at", "host", "known", "length", "received", "since", "since_received")

    def __init__(self, reading: FrameReading, now: float) -> None:
        self.host = reading.host
        self.known = reading.known
        self.length = self.received = self.since_received = 0
        self.since = now  # when the measured time began, and with how many bytes
        self.admitted_at: float | None = None

    @property
    def remaining(self) -> int:
        return self.length - self.received


class FrameMemory:
    """A limiter of bytes; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float], limits: FrameLimits | None = None) -> None:
        self._clock = clock
        self._limits = limits or FrameLimits()
        self._frames: dict[FrameReading, _Frame] = {}
        self._waiting: dict[FrameReading, _Frame] = {}
        self._queues = {known: PriorityQueue(self._priority) for known in (True, False)}
        self._waiting_bytes = 0
        self._received = 0  # bytes of all frames
        self._hosts: dict[str, int] = {}  # bytes of the frames of each
        self._admitted = {True: 0, False: 0}  # whole lengths of admitted frames: of known hosts, of others
        self._requests: dict[int, tuple[int, bool]] = {}
        self._under_way = {True: 0, False: 0}  # bytes of requests
        self._looked_at = clock()

    @property
    def taken(self) -> int:
        """Bytes that frames and requests have now."""
        return self._received + self._under_way[True] + self._under_way[False]

    def grow(self, reading: FrameReading, length: int, received: int) -> bool:
        """Note how much of an incomplete frame has come; False if its reader has to wait for `read_on`. One that is
        paused does not wait: it would be admitted in the place of another that reads."""
        frame = self._frames.get(reading)
        if frame is None:
            if length <= LONG and received <= SMALL:
                return True
            frame = self._frames[reading] = _Frame(reading, self._clock())
        if self._waiting:
            self._stop_waiting(reading)
        self._count(frame, length, received)
        if frame.admitted_at is not None or reading.paused or self._has_room(frame):
            return True
        self._waiting[reading] = frame
        self._queues[frame.known].add(reading)
        self._waiting_bytes += received
        self._admit()
        self._shed()
        return frame.admitted_at is not None

    def end(self, reading: FrameReading) -> None:
        """Note that the frame is whole, or will never be."""
        frame = self._frames.pop(reading, None)
        if frame is None:
            return
        if self._waiting:
            self._stop_waiting(reading)
        if frame.admitted_at is not None:
            self._admitted[frame.known] -= frame.length
        self._count(frame, 0, 0)
        self._admit()

    def reserve(self, request: object, length: int, known: bool) -> None:
        """Count the bytes of a request, of a known host or not, until `release`; those up to SMALL need not be."""
        self._requests[id(request)] = length, known
        self._under_way[known] += length

    def release(self, request: object) -> None:
        """Count a request as answered, and admit frames that wait."""
        if not self._requests:
            return
        length, known = self._requests.pop(id(request), (0, False))
        if length:
            self._under_way[known] -= length
            self._admit()

    def too_slow(self) -> list[tuple[FrameReading, str]]:
        """Return readings that came too slowly, and why each has to end; to be called every half second or so."""
        now = self._clock()
        stood_still, self._looked_at = now - self._looked_at > self._limits.stood_still_s, now
        crowded = {frame.known for frame in self._waiting.values()}
        found = []
        for reading, frame in self._frames.items():
            if reading in self._waiting or stood_still:
                self._measure_from(frame, now)
            elif reason := self._slowness(reading, frame, now, frame.known in crowded):
                found.append((reading, reason))
        return found

    def _slowness(self, reading: FrameReading, frame: _Frame, now: float, crowded: bool) -> str:
        limits = self._limits
        if crowded and frame.admitted_at is not None and now - frame.admitted_at > limits.admitted_s:
            return f"its frame took over {limits.admitted_s:g} s while others waited"
        if reading.paused:
            self._measure_from(frame, now)
            return ""
        measured_s = now - frame.since
        if measured_s < (limits.crowded_s if crowded else limits.measured_s):
            return ""
        least = frame.since_received + measured_s * limits.rate
        if frame.received < least and frame.received + reading.unread < least:
            return f"its frame came with less than {limits.rate} bytes a second"
        self._measure_from(frame, now)
        return ""

    def _measure_from(self, frame: _Frame, now: float) -> None:
        frame.since, frame.since_received = now, frame.received

    def _count(self, frame: _Frame, length: int, received: int) -> None:
        more = received - frame.received
        frame.length, frame.received = length, received
        self._received += more
        left = self._hosts.get(frame.host, 0) + more
        if left:
            self._hosts[frame.host] = left
        else:
            self._hosts.pop(frame.host, None)

    def _has_room(self, frame: _Frame) -> bool:
        """Whether a frame may be read on as it comes."""
        most = self._limits.known if frame.known else self._limits.unknown
        return self.taken <= most and self._hosts[frame.host] <= self._limits.host

    def _admit(self) -> None:
        """Admit frames that wait, as long as they fit."""
        while self._waiting:
            for known in (True, False):
                reading = self._queues[known].next()
                if reading is not None and self._fits(self._waiting[reading]):
                    break
            else:
                return
            frame = self._waiting[reading]
            self._stop_waiting(reading)
            frame.admitted_at = now = self._clock()
            self._measure_from(frame, now)
            self._admitted[known] += frame.length
            reading.read_on()

    def _priority(self, reading: FrameReading) -> Priority:
        """First the one that is whole soonest; hosts that have more than their share come last."""
        frame = self._waiting[reading]
        return self._hosts[frame.host] > self._limits.host, frame.remaining

    def _fits(self, frame: _Frame) -> bool:
        """Whether a frame may be admitted: one always may where nothing is under way, at least of known hosts."""
        of_known = self._admitted[True] + self._under_way[True]
        busy = of_known + self._admitted[False] + self._under_way[False]
        return not (of_known if frame.known else busy) or busy + frame.length <= self._limits.admitted

    def _stop_waiting(self, reading: FrameReading) -> None:
        frame = self._waiting.pop(reading, None)
        if frame is not None:
            self._queues[frame.known].discard(reading)
            self._waiting_bytes -= frame.received

    def _shed(self) -> None:
        """Cut off frames that wait while they have too much, of the host that has most."""
        while self._waiting_bytes > self._limits.waiting:
            reading = max(self._waiting, key=self._burden)
            self._stop_waiting(reading)
            reading.abort("too many frames wait for memory")

    def _burden(self, reading: FrameReading) -> tuple[bool, int, int]:
        frame = self._waiting[reading]
        return not frame.known, self._hosts[frame.host], frame.received
