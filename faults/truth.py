"""What is known of each broker over time: that it is there, that it is not, or neither."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from enum import Enum

from faults.notes import Note

BEFORE_ANSWER_S = 3.0
"""A lease was renewed at most so long before its broker heard of it, where it did."""


class Known(Enum):
    """What may be said of a broker at a moment."""

    THERE = "there"
    AWAY = "away"
    OPEN = "open"
    """It is on its way in or out."""


class Timeline:
    """One broker's: what is known from which time on. It is away at first."""

    def __init__(self) -> None:
        self._times = [float("-inf")]
        self._known = [Known.AWAY]

    def add(self, at: float, known: Known) -> None:
        """From `at` on it is so, whatever was thought to come later."""
        keep = bisect_left(self._times, at)
        self._times[keep:] = [at]
        self._known[keep:] = [known]

    def certain(self, begin: float, end: float) -> Known:
        """What is so all the time; OPEN when that is nothing."""
        first, last = bisect_right(self._times, begin) - 1, bisect_right(self._times, end)
        states = set(self._known[first:last])
        return states.pop() if len(states) == 1 else Known.OPEN


class Truth:
    """The timelines of all brokers, from what they told (`note`) and what was done to them."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._timelines: dict[str, Timeline] = {}
        self._heard: dict[str, float] = {}

    def of(self, broker: str) -> Timeline:
        return self._timelines.setdefault(broker, Timeline())

    def note(self, note: Note) -> None:
        """One thing that a broker told."""
        known = {"registered": Known.THERE, "unregistered": Known.AWAY}.get(note.kind, Known.OPEN)
        if note.kind == "registered":
            self._heard[note.broker] = note.at
        if note.kind != "failed":  # what was registered before still is
            self.of(note.broker).add(note.at, known)

    def killed(self, brokers: Iterable[str], begun: float, at: float) -> None:
        """Their connections are closed and nobody listens: they are to be gone as soon as answers follow. The service
        may have seen that from `begun` on."""
        for broker in brokers:
            self.of(broker).add(begun, Known.OPEN)
            self.of(broker).add(at, Known.AWAY)

    def silenced(self, brokers: Iterable[str], at: float) -> None:
        """Nothing comes from them any more: they are there until their leases end, and then they are not."""
        for broker in brokers:
            ends = self._heard[broker] - BEFORE_ANSWER_S + self._lease_s
            self.of(broker).add(max(ends, at), Known.OPEN)
            self.of(broker).add(at + self._lease_s, Known.AWAY)

    def awake(self, brokers: Iterable[str], at: float) -> None:
        """They go on as if nothing had been."""
        for broker in brokers:
            self.of(broker).add(at, Known.OPEN)
