"""One process of the stage: its own session and folder, its output in a file, killed at the end."""

import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from mqnamesrv.child import Child
from mqnamesrv.program import Program
from testbed.eventually import PATIENCE_S, eventually

PRINTED_AT_MOST = 4000


class Process:
    """A started process."""

    def __init__(self, name: str, argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.folder = folder
        self._path = folder / "output.txt"
        self._file = self._path.open("wb")
        self._child = Child(name, Program(argv, env=env, cwd=folder, output=self._file))
        self._child.start()

    @property
    def pid(self) -> int:
        """Return the process id, not of a child."""
        return self._child.pid

    @property
    def runs(self) -> bool:
        """Return whether it has not ended."""
        return self._child.exit_code() is None

    @property
    def output(self) -> Path:
        """Return the file that has what it prints."""
        return self._path

    def printed(self) -> str:
        """Return its output so far."""
        return self._path.read_text(errors="replace")

    def await_printed(self, pattern: str, within_s: float = PATIENCE_S) -> re.Match[str]:
        """Return the first match in its output; raise AssertionError with the output's end if none comes in time."""

        def look() -> re.Match[str] | None:
            match = re.search(pattern, self.printed())
            if not match and not self.runs:
                raise Ended(self)
            return match

        match = eventually(look, within_s)
        assert match
        return match

    def await_end(self, within_s: float) -> None:
        """Wait until it has ended by itself."""
        eventually(lambda: not self.runs, within_s)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._child.signal(number)

    def ask_to_end(self, within_s: float) -> None:
        """Send SIGTERM and wait until it has ended; raise AssertionError if that takes longer."""
        self.signal(signal.SIGTERM)
        self.await_end(within_s)

    def kill(self) -> None:
        """Send SIGKILL to it and all that it has started."""
        self._child.end(0)
        self._file.close()


class Ended(Exception):
    """A process ended before the awaited output."""

    def __init__(self, process: Process) -> None:
        super().__init__(f"{process.name} ended:\n{process.printed()[-PRINTED_AT_MOST:]}")
