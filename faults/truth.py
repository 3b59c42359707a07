"""The presence of each broker over time, from its notes and from what was done to it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from enum import Enum

from faults.notes import Note

BEFORE_REPLY_S = 3.0
"""A lease was renewed at most so long before its broker received the reply."""


class Presence(Enum):
    """Whether routes must show a broker at a moment (PRESENT), must not (AWAY), or may (UNCERTAIN)."""

    PRESENT = "present"
    AWAY = "away"
    UNCERTAIN = "uncertain"
    """It registers, unregisters or its lease ends."""


class Timeline:
    """The presence of one broker from each time on; AWAY at first."""

    def __init__(self) -> None:
        self._times = [float("-inf")]
        self._presence = [Presence.AWAY]

    def add(self, at: float, presence: Presence) -> None:
        """Set the presence from `at` on, and drop what was set for later."""
        keep = bisect_left(self._times, at)
        self._times[keep:] = [at]
        self._presence[keep:] = [presence]

    def certain(self, begin: float, end: float) -> Presence:
        """Return the presence that lasts from `begin` to `end`; UNCERTAIN if it changes."""
        first, last = bisect_right(self._times, begin) - 1, bisect_right(self._times, end)
        states = set(self._presence[first:last])
        return states.pop() if len(states) == 1 else Presence.UNCERTAIN


class Truth:
    """The timelines of all brokers, from their notes and from what was done to them."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._timelines: dict[str, Timeline] = {}
        self._renewed_at: dict[str, float] = {}

    def of(self, broker: str) -> Timeline:
        return self._timelines.setdefault(broker, Timeline())

    def note(self, note: Note) -> None:
        """Add a broker's note."""
        presence = {"registered": Presence.PRESENT, "unregistered": Presence.AWAY}.get(
            note.kind, Presence.UNCERTAIN
        )
        if note.kind == "registered":
            self._renewed_at[note.broker] = note.at
        if note.kind != "failed":  # what was registered before still is
            self.of(note.broker).add(note.at, presence)

    def killed(self, brokers: Iterable[str], begun: float, at: float) -> None:
        """Add brokers whose processes were killed: AWAY from `at` on, UNCERTAIN from `begun` on."""
        for broker in brokers:
            self.of(broker).add(begun, Presence.UNCERTAIN)
            self.of(broker).add(at, Presence.AWAY)

    def silenced(self, brokers: Iterable[str], at: float) -> None:
        """Add brokers that send nothing from `at` on: PRESENT until their leases end, then AWAY."""
        for broker in brokers:
            ends = self._renewed_at[broker] - BEFORE_REPLY_S + self._lease_s
            self.of(broker).add(max(ends, at), Presence.UNCERTAIN)
            self.of(broker).add(at + self._lease_s, Presence.AWAY)

    def awake(self, brokers: Iterable[str], at: float) -> None:
        """Add brokers that send again from `at` on."""
        for broker in brokers:
            self.of(broker).add(at, Presence.UNCERTAIN)
