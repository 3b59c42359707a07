"""One child process in its own session, which ends with its parent and together with its own children."""

import os
import signal
import time
from contextlib import suppress
from typing import Protocol

POLL_S = 0.01


class Process(Protocol):
    """A started process, the leader of a session."""

    @property
    def pid(self) -> int:
        """Return its process id."""
        ...

    def poll(self) -> int | None:
        """Return its exit code: None while it runs, negative for the signal that ended it."""
        ...

    def send_signal(self, sig: int) -> None:
        """Send it a signal if it still runs."""
        ...


class Start(Protocol):
    """A way to start a process: `Program` or `Fork`."""

    def start(self) -> Process:
        """Start it; OSError if that fails."""
        ...


class Child:
    """One process: how to start it, and its handle while it runs.

    A session of its own keeps the terminal's Ctrl-C from it: only the supervisor ends it.
    """

    def __init__(
        self, name: str, how: Start, *, grace_s: float = 10.0, reload: signal.Signals = signal.SIGTERM
    ) -> None:
        self.name = name
        self.grace_s = grace_s
        self.reload = reload  # the signal that makes it replace its workers
        self._how = how
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        """Return the process id of the running or last process; 0 before the first."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start the process; OSError if that fails."""
        self._process = self._how.start()

    def exit_code(self) -> int | None:
        """Return the exit code: None while it runs, negative for the signal that ended it."""
        return self._process.poll() if self._process else 0

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal if it still runs."""
        if self._process:
            self._process.send_signal(number)

    def end(self, deadline: float | None = None) -> None:
        """Wait until it is gone, at most to `deadline` (monotonic), then kill what is left of its session.

        For an orderly end the caller sends SIGTERM before.
        """
        if deadline is None:
            deadline = time.monotonic() + self.grace_s
        while self.exit_code() is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self.clear()
        while self.exit_code() is None:
            time.sleep(POLL_S)
        self._process = None

    def stop(self) -> None:
        """Send SIGTERM and wait until it has ended."""
        self.signal(signal.SIGTERM)
        self.end()

    def clear(self) -> None:
        """Kill all processes that are left in its session."""
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
