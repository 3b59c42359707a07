"""The load generator (bench/load.c) as a process that keeps its connections from run to run."""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from rocketmq_remoting.typed import decoded


class Sample(msgspec.Struct, frozen=True):
    """The figures of one stream in one run. `lost` requests had no reply at its end; they count as latencies.

    `seconds` lasts until the last reply; `late_us` is by how much the generator itself was late at worst.
    `cpu_seconds` is of the server; the caller fills it in."""

    sent: int
    answers: int
    errors: int
    lost: int
    seconds: float
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float
    late_us: float
    cpu_seconds: float = 0.0

    @property
    def per_cpu_second(self) -> float:
        return self.answers / self.cpu_seconds if self.cpu_seconds else 0.0

    @property
    def per_second(self) -> float:
        return self.answers / self.seconds if self.seconds else 0.0


class Stream(msgspec.Struct, frozen=True):
    """Connections that send the frames of a file; connection c begins with frame c and goes on in strides."""

    connections: int
    frames: Path


class Load:
    """A running generator; `with` ends it. RuntimeError when it ends by itself, such as when a server hangs up."""

    def __init__(
        self, program: Path, port: int, streams: Sequence[Stream], *, host: str = "127.0.0.1"
    ) -> None:
        words = [f"{stream.connections}:{stream.frames}" for stream in streams]
        self._process = subprocess.Popen(
            [program, host, str(port), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, seconds: float, *modes: str) -> list[Sample]:
        """One run; a mode is `STREAM=closed:DEPTH`, `STREAM=open:PER_SECOND` or `STREAM=once`."""
        self.begin(seconds, *modes)
        return self.end()

    def begin(self, seconds: float, *modes: str) -> None:
        """Start a run; `end` returns its samples."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join((f"{seconds}", *modes, "\n")).encode())
        self._process.stdin.flush()

    def end(self) -> list[Sample]:
        """Wait for the run and return a sample of each stream, in the order of their numbers."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            _, why = self._process.communicate()
            raise RuntimeError(f"the load generator ended: {why.decode().strip()}")
        return decoded(line, list[Sample])

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)


def frame_file(path: Path, frames: Iterable[bytes]) -> Path:
    """Write frames into a file for a stream, and return its path."""
    with path.open("wb") as file:
        file.writelines(frames)
    return path
