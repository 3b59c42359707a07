"""The connections that wait for their peers: for what, and until when."""

import selectors
import time
from collections.abc import Callable, Mapping
from typing import Final

from api.transport.connection import Connection
from api.transport.limits import Phase

EVENTS: Final[Mapping[Phase, int]] = {Phase.ANSWER: selectors.EVENT_WRITE}
"""What the poller looks for, if not for something to read."""


class Waiting:
    """Connections by phase, the one that has waited longest first: all of a phase wait for the same time."""

    def __init__(
        self,
        poller: selectors.BaseSelector,
        seconds: Mapping[Phase, float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._poller = poller
        self._seconds = dict(seconds)
        self._clock = clock
        self._until: dict[Phase, dict[Connection, float]] = {phase: {} for phase in Phase if phase in seconds}

    def enter(self, connection: Connection, phase: Phase, ready: Callable[[Connection], None]) -> None:
        """Let a connection wait; its poller calls `ready`. One that waits in this phase already does so no longer."""
        if phase is connection.phase:
            return
        if connection.phase is Phase.WHOLE:
            arm = self._poller.register
        else:
            arm = self._poller.modify
            del self._until[connection.phase][connection]
        connection.phase = phase
        self._until[phase][connection] = self._clock() + self._seconds[phase]
        arm(connection.peer, EVENTS.get(phase, selectors.EVENT_READ), lambda _: ready(connection))

    def leave(self, connection: Connection) -> None:
        """Let a connection wait no more."""
        if connection.phase is not Phase.WHOLE:
            del self._until[connection.phase][connection]
            connection.phase = Phase.WHOLE
            self._poller.unregister(connection.peer)

    def overdue(self) -> list[Connection]:
        """Return those whose time is over."""
        now = self._clock()
        found = []
        for connections in self._until.values():
            for connection, until in connections.items():
                if until > now:
                    break
                found.append(connection)
        return found

    def pause_s(self, most: float) -> float:
        """Return how long it takes until a connection is overdue, `most` at most."""
        firsts = (next(iter(connections.values()), None) for connections in self._until.values())
        until = min((first for first in firsts if first is not None), default=None)
        return most if until is None else min(most, max(0.0, until - self._clock()))

    def shorten(self, phase: Phase, seconds: float) -> None:
        """Let no connection wait longer than this in a phase, now and from now on."""
        self._seconds[phase] = min(seconds, self._seconds[phase])
        latest = self._clock() + seconds
        self._until[phase] = {one: min(until, latest) for one, until in self._until[phase].items()}

    def all(self) -> list[Connection]:
        """Return all that wait, in the order in which they make room for others."""
        return [one for connections in self._until.values() for one in connections]

    def first(self) -> Connection | None:
        """Return the one that makes room for another connection."""
        return next((one for connections in self._until.values() for one in connections), None)

    def largest(self) -> Connection | None:
        """Return the one that holds most memory."""
        return max(self.all(), key=lambda one: one.held, default=None)
