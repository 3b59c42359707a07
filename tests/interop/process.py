"""One process of the stage: its own session and folder, what it prints in a file, gone at the end however."""

import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from launcher.child import Child
from tests.harness.patience import eventually

PRINTED_AT_MOST = 4000


class Process:
    """A started process."""

    def __init__(self, name: str, argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.folder = folder
        self._path = folder / "output.txt"
        self._file = self._path.open("wb")
        self._child = Child(name, argv, env=env, cwd=folder, output=self._file)
        self._child.start()

    @property
    def pid(self) -> int:
        """Of the process itself, not of those it starts."""
        return self._child.pid

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._child.exit_code() is None

    def printed(self) -> str:
        """All it has printed so far."""
        return self._path.read_text(errors="replace")

    def await_printed(self, pattern: str, within_s: float) -> re.Match[str]:
        """The first match in what it prints; AssertionError with the end of that when it ends or takes longer."""

        def look() -> re.Match[str] | None:
            found = re.search(pattern, self.printed())
            if not found and not self.runs:
                raise Ended(self)
            return found

        found = eventually(look, within_s)
        assert found
        return found

    def await_end(self, within_s: float) -> None:
        """Wait until it has ended by itself."""
        eventually(lambda: not self.runs, within_s)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._child.signal(number)

    def ask_to_end(self, within_s: float) -> None:
        """SIGTERM, and wait until it is gone; whoever is not in time is an AssertionError."""
        self.signal(signal.SIGTERM)
        self.await_end(within_s)

    def kill(self) -> None:
        """SIGKILL to it and all that it has started."""
        self._child.end(0)
        self._file.close()


class Ended(Exception):
    """A process ended before it said what was awaited."""

    def __init__(self, process: Process) -> None:
        super().__init__(f"{process.name} ended:\n{process.printed()[-PRINTED_AT_MOST:]}")
