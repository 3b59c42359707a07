"""One child process in its own session, which ends with its parent and together with its own children."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded before any fork


def _die_with(parent: int) -> None:
    """Have the kernel send SIGTERM to this child when its parent dies (Linux)."""
    if LIBC is not None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)


class Child:
    """One process: how to start it, and its handle while it runs.

    A session of its own keeps the terminal's Ctrl-C from it: only the supervisor ends it.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        grace_s: float = 10.0,
        reload: signal.Signals = signal.SIGTERM,
        output: IO[bytes] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.grace_s = grace_s
        self.reload = reload  # the signal that makes it reload its code
        self._argv = list(argv)
        self._env = None if env is None else dict(env)
        self._pass_fds = tuple(pass_fds)
        self._output = output
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the process id of the running or last process; 0 before the first."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start the process; OSError if the program cannot be run."""
        parent = os.getpid()
        self._process = subprocess.Popen(
            self._argv,
            env=self._env,
            pass_fds=self._pass_fds,
            cwd=self._cwd,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
            preexec_fn=lambda: _die_with(parent),
        )

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
        if self._process is None:
            return
        remaining = self.grace_s if deadline is None else max(deadline - time.monotonic(), 0)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(remaining)
        self.clear()
        self._process.wait()
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
