"""The bench: Java's name server and ours, in turn, on the same core in the same minutes (`make bench`).

    python -m bench.run [--rounds N] [--seconds S] [--only TEXT]

Writes bench/RESULTS.md. A figure is answers per second of CPU time that the server's processes used, Redis and
supervisor included; a ratio is ours over Java's. Nothing here is a test: figures depend on the machine.
"""

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import tempfile
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import msgspec

from bench.java import JAVA_VERSION, java_name_server
from bench.servers import Server, ours
from bench.workloads import Workload, all_workloads
from remoting.codes import ResponseCode
from remoting.frame import FrameReader

HERE = Path(__file__).resolve().parent
SERVER_CORE, LOAD_CORE = 0, 1
LIBRARIES = ("redis", "hiredis", "uvloop", "msgspec", "gunicorn")
WARM_UP_S = 25  # Java's compilers need as long


class Sample(msgspec.Struct, frozen=True):
    """One run of one workload against one server."""

    answers: int
    errors: int
    seconds: float
    p50_us: float
    p99_us: float
    p999_us: float
    cpu_seconds: float = 0.0

    @property
    def per_cpu_second(self) -> float:
        return self.answers / self.cpu_seconds if self.cpu_seconds else 0.0


class Row(msgspec.Struct, frozen=True):
    """All samples of one workload."""

    name: str
    java: list[Sample]
    ours: list[Sample]


def main() -> None:
    """Run the bench and write bench/RESULTS.md."""
    parser = argparse.ArgumentParser(description="name servers side by side")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each workload against each server")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a run")
    parser.add_argument("--only", default="", help="only workloads whose name holds this")
    given = parser.parse_args()
    workloads = [one for one in all_workloads() if given.only in one.name]
    with tempfile.TemporaryDirectory() as scratch:
        load = _built(Path(scratch))
        rows = [_row(one, load, Path(scratch), given.rounds, given.seconds) for one in workloads]
    if not given.only:
        (HERE / "RESULTS.md").write_text(_report(rows, given.rounds, given.seconds))


def _row(workload: Workload, load: Path, scratch: Path, rounds: int, seconds: float) -> Row:
    frames = scratch / "frames"
    frames.write_bytes(b"".join(workload.frames))
    java: list[Sample] = []
    mine: list[Sample] = []
    with ExitStack() as stack:
        # Both stay up and take turns, so that both see the same minutes of the machine.
        data = stack.enter_context(tempfile.TemporaryDirectory())
        pairs = (
            (
                stack.enter_context(java_name_server(_free_port(), Path(data) / "java", core=SERVER_CORE)),
                java,
            ),
            (stack.enter_context(ours(_free_port(), Path(data) / "ours", core=SERVER_CORE)), mine),
        )
        connections = []
        for server, _ in pairs:
            connections.append(stack.enter_context(_prepared(server, workload)))
            _run(load, server, workload, frames, WARM_UP_S if server.name == "java" else 3.0)
        for _ in range(rounds):
            for server, samples in pairs:
                samples.append(_run(load, server, workload, frames, seconds))
    row = Row(workload.name, java, mine)
    print(_line(row), flush=True)
    return row


def _run(load: Path, server: Server, workload: Workload, frames: Path, seconds: float) -> Sample:
    before = server.cpu_seconds()
    numbers = ["127.0.0.1", server.port, workload.connections, workload.depth, seconds, frames]
    out = subprocess.run(
        ["taskset", "-c", str(LOAD_CORE), load, *map(str, numbers)],
        check=True,
        capture_output=True,
        text=True,
    )
    sample = msgspec.convert(json.loads(out.stdout), Sample)
    if sample.errors:
        raise RuntimeError(f"{workload.name}: {sample.errors} answers of {server.name} were errors")
    return msgspec.structs.replace(sample, cpu_seconds=server.cpu_seconds() - before)


def _prepared(server: Server, workload: Workload) -> socket.socket:
    """Register the workload's brokers, over a connection that stays open while it runs."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    reader = FrameReader()
    for frame in workload.prepare:
        connection.sendall(frame)
        while (answer := reader.next_command()) is None:
            reader.feed(connection.recv(65536))
        if answer.code != ResponseCode.SUCCESS:
            raise RuntimeError(f"{server.name} refused a registration: {answer.code} {answer.remark}")
    return connection


def _built(scratch: Path) -> Path:
    load = scratch / "load"
    subprocess.run(["cc", "-O2", "-o", load, HERE / "load.c"], check=True)
    return load


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _median(samples: list[Sample]) -> str:
    rates = sorted(sample.per_cpu_second for sample in samples)
    return f"{statistics.median(rates):,.0f} ({rates[0]:,.0f}-{rates[-1]:,.0f})"


def _line(row: Row) -> str:
    java, mine = (statistics.median(s.per_cpu_second for s in samples) for samples in (row.java, row.ours))
    java_p99, our_p99 = (
        statistics.median(s.p99_us for s in samples) / 1000 for samples in (row.java, row.ours)
    )
    rates = f"{_median(row.java)} | {_median(row.ours)} | **{mine / java:.2f}**"
    return f"| {row.name} | {rates} | {java_p99:.1f} | {our_p99:.1f} |"


def _report(rows: list[Row], rounds: int, seconds: float) -> str:
    head = (HERE / "RESULTS.head.md").read_text()
    conditions = (
        f"Machine: {os.cpu_count()} cores, {_processor()}, Linux {platform.release()}; "
        f"Python {platform.python_version()}, {_libraries()}; Java's server {JAVA_VERSION}. "
        f"Median of {rounds} runs of {seconds:g} s, least and most in brackets."
    )
    table = [
        "| load | Java, answers per CPU second | ours | ratio | Java p99 ms | ours p99 ms |",
        "|---|---|---|---|---|---|",
        *(_line(row) for row in rows),
    ]
    return "\n".join([head, conditions, "", *table, ""])


def _libraries() -> str:
    return ", ".join(f"{name} {version(name)}" for name in LIBRARIES)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
