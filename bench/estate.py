"""What a real estate of brokers costs at its own rates: Java's server and this one, in CPU time of a second.

Brokers of 5.x register every 30 s, ask for the cluster info every 5 s, and with acting masters send a heartbeat every
second. These loads come by that schedule, so what a server does for many at once helps it only as far as they come at
once."""

import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from bench.asking import Asking
from bench.generator import Load, Sample, Stream, frame_file
from bench.java import java_name_server
from bench.report import Row, median_ms
from bench.servers import Server, this_server
from bench.setting import Setting
from bench.workloads import ALIKE, cluster_info, heartbeats, registered, unchanged
from testbed.ports import free_port

PERIOD_S: Final = 30
"""Of registrations."""
ASKING_S: Final = 5
"""Of the cluster info. Of thousands of brokers its replies are more bytes than a load generator takes."""
TOPICS: Final = 10
ROUNDS: Final = 2
"""Of registrations in the file of frames: each has another time in it."""
KNOWN_S: Final = 9.0
"""In which each broker registers once over its own connection: until then its registrations are no unchanged ones."""
CONNECTIONS: Final = 1_000
"""At most: more brokers share them, each always the same one."""
REGISTERED, HEARTBEATS, INFO = range(3)
"""The streams of a load."""


class Estate(msgspec.Struct, frozen=True):
    """So many brokers. `goal` is Java's CPU time over this server's."""

    brokers: int
    acting: bool
    goal: float
    asks: bool = False

    @property
    def name(self) -> str:
        """Return the name of its row."""
        more = [
            *(["heartbeats each second"] if self.acting else []),
            *(["cluster info each 5 s"] if self.asks else []),
        ]
        return f"estate of {self.brokers:,} brokers, " + ", ".join(["registrations each 30 s", *more])

    @property
    def modes(self) -> tuple[str, ...]:
        """Return the rates of its streams."""
        return (
            f"{REGISTERED}=open:{self.brokers / PERIOD_S:g}",
            *([f"{HEARTBEATS}=open:{self.brokers}"] if self.acting else []),
            *([f"{INFO}=open:{self.brokers / ASKING_S:g}"] if self.asks else []),
        )


ESTATES: Final = (
    Estate(300, acting=False, asks=True, goal=1.0),
    Estate(300, acting=True, asks=True, goal=0.9),
    Estate(3_000, acting=False, goal=1.0),
    Estate(3_000, acting=True, goal=1.0),
    Estate(10_000, acting=False, goal=1.0),
    Estate(10_000, acting=True, goal=1.1),
)
NAMES: Final = tuple(estate.name for estate in ESTATES)


class Run(msgspec.Struct, frozen=True):
    """CPU seconds of a server's processes in a second, and what was answered of the registrations."""

    cpu: float
    registrations: Sample


def estates(wanted: str, setting: Setting) -> list[Row]:
    """Return the rows of the estates whose name holds `wanted`."""
    return [_row(estate, *_runs(estate, setting)) for estate in ESTATES if wanted in estate.name]


def _runs(estate: Estate, setting: Setting) -> tuple[list[Run], list[Run]]:
    """Return the runs of Java's server and of this one, by turns."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        core = setting.server_core
        java = stack.enter_context(java_name_server(free_port(), folder / "java", core=core))
        mine = stack.enter_context(this_server(free_port(), folder / "ours", core=core))
        streams = _streams(estate.brokers, folder)
        loads = []
        for server, warm_up_s in ((java, setting.warm_up_s), (mine, setting.our_warm_up_s)):
            stack.enter_context(Asking(server.port)).ask_all(registered(estate.brokers, TOPICS, ALIKE)())
            load = stack.enter_context(Load(setting.program("load"), server.port, streams))
            load.run(KNOWN_S + 1, f"{REGISTERED}=open:{estate.brokers / KNOWN_S:g}")
            load.run(warm_up_s, *estate.modes)
            loads.append((server, load, list[Run]()))
        for _ in range(setting.rounds):
            for server, load, runs in loads:
                runs.append(_run(estate, server, load, setting.seconds))
    (_, _, java_runs), (_, _, our_runs) = loads
    return java_runs, our_runs


def _streams(brokers: int, folder: Path) -> list[Stream]:
    connections = min(brokers, CONNECTIONS)
    return [
        Stream(connections, frame_file(folder / "registrations", unchanged(brokers, TOPICS, ROUNDS, ALIKE))),
        Stream(connections, frame_file(folder / "heartbeats", heartbeats(brokers))),
        Stream(connections, frame_file(folder / "info", cluster_info() * connections)),
    ]


def _run(estate: Estate, server: Server, load: Load, seconds: float) -> Run:
    before = server.cpu_seconds()
    samples = load.run(seconds, *estate.modes)
    if any(sample.errors or sample.lost for sample in samples):
        raise RuntimeError(f"{estate.name}: {server.name} erred or lost: {samples}")
    return Run((server.cpu_seconds() - before) / seconds, samples[0])


def _row(estate: Estate, java: list[Run], mine: list[Run]) -> Row:
    ratio = statistics.median(run.cpu for run in java) / statistics.median(run.cpu for run in mine)
    goal = f"Java's CPU time ≥ {estate.goal:g} of this server's"
    return Row(estate.name, _figures(java), _figures(mine), goal, f"**{ratio:.2f}**", ratio >= estate.goal)


def _figures(runs: list[Run]) -> str:
    cpu = statistics.median(run.cpu for run in runs)
    registrations = [run.registrations for run in runs]
    p50, p99 = median_ms(registrations, "p50_us"), median_ms(registrations, "p99_us")
    return f"{cpu:.1%} of a core; 103 p50 {p50:.2f}, p99 {p99:.2f} ms"
