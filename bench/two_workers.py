"""The gain of a second worker on a second core."""

import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

import msgspec

from bench.asking import Asking
from bench.generator import Load, Stream
from bench.report import Row, spread
from bench.servers import Server, cpu_seconds, this_server
from bench.setting import Setting
from bench.workloads import lookups, registered
from testbed.ports import free_port

NAME = "two workers on two cores against one"
NAMES = (NAME,)
GOAL = 1.8
CONNECTIONS = 200
MODE = "0=closed:1"


class Run(msgspec.Struct, frozen=True):
    """`per_cpu_second` over all processes of the server; `busier` is the busier worker's fraction of their time."""

    per_cpu_second: float
    busier: float

    @property
    def two_cores(self) -> float:
        """Return the replies a second of two cores, one for each worker, when the busier one has no time left."""
        return self.per_cpu_second / self.busier


def two_workers(setting: Setting) -> list[Row]:
    """The load needs a core of its own, and there may be only two, so the second worker's gain is computed.

    One worker and its store on one core answer r1 a CPU second; two workers, on the cores that are there and together
    with the load, answer r2 a CPU second, and the busier one does the part b of their work. On two cores of their own
    they would answer r2 / b a second. What they cost each other is in r2, how evenly the work is balanced is in b;
    how two real cores slow one another down is not measured."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        frames = folder / "frames"
        frames.write_bytes(b"".join(lookups(10)))
        both = f"{setting.server_core},{setting.load_core}"
        one = stack.enter_context(this_server(free_port(), folder / "one", core=setting.server_core))
        two = stack.enter_context(this_server(free_port(), folder / "two", core=both, workers=2))
        loads: list[tuple[Server, Load, list[Run]]] = []
        for server in (one, two):
            stack.enter_context(Asking(server.port)).ask_all(registered(4, 10)())
            load = stack.enter_context(
                Load(setting.program("load"), server.port, [Stream(CONNECTIONS, frames)])
            )
            load.run(setting.our_warm_up_s, MODE)
            loads.append((server, load, []))
        for _ in range(setting.rounds):
            for server, load, runs in loads:
                runs.append(_run(server, load, setting.seconds))
    return [_row(loads[0][2], loads[1][2])]


def _run(server: Server, load: Load, seconds: float) -> Run:
    workers = server.workers()
    before, each_before = server.cpu_seconds(), [cpu_seconds(pid) for pid in workers]
    (sample,) = load.run(seconds, MODE)
    if sample.errors or sample.lost:
        raise RuntimeError(f"{NAME}: {sample.errors} errors, {sample.lost} lost")
    each = [cpu_seconds(pid) - start for pid, start in zip(workers, each_before, strict=True)]
    return Run(sample.answers / (server.cpu_seconds() - before), max(each) / sum(each))


def _row(one: list[Run], two: list[Run]) -> Row:
    alone = statistics.median(run.two_cores for run in one)
    together = statistics.median(run.two_cores for run in two)
    busier = statistics.median(run.busier for run in two)
    ratio = together / alone
    return Row(
        NAME,
        f"one worker: {spread([run.per_cpu_second for run in one])} a CPU second",
        f"two: {spread([run.per_cpu_second for run in two])} a CPU second, the busier did {busier:.0%}",
        f"≥ {GOAL:g} times",
        f"**{ratio:.2f} times**, computed",
        ratio >= GOAL,
    )
