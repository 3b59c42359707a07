"""Replies per second of CPU time over closed loops: Java's server, this one, and one of canned bytes.

A figure is replies per second of CPU time that the server's processes used, Redis and supervisor included; a ratio is
this server's over the other's. All servers stay up and are measured by rotation, so that they see the same minutes of
the machine, and the generator keeps its connections, so that no broker's connection ends between two runs."""

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import msgspec

from bench.asking import Asking
from bench.generator import Load, Sample, Stream, frame_file
from bench.java import java_name_server
from bench.report import Row, median_ms, rows_or_reason, spread
from bench.servers import Server, canned, this_server
from bench.setting import Setting
from bench.workloads import Scene, Workload
from testbed.ports import free_port

IDLE = 0.9  # a server that was busy for less of the time waited for the generator


class Side(msgspec.Struct, frozen=True):
    """A server with its generator for one workload, and what was measured."""

    server: Server
    load: Load
    samples: list[Sample]

    @property
    def rate(self) -> float:
        return statistics.median(sample.per_cpu_second for sample in self.samples)


def closed_loops(scene: Scene, setting: Setting) -> list[Row]:
    """Return two rows for a workload that has a goal against canned bytes, else one."""
    rows: list[Row] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        core = setting.server_core
        java = stack.enter_context(java_name_server(free_port(), folder / "java", core=core))
        mine = stack.enter_context(this_server(free_port(), folder / "ours", core=core))
        for server in (java, mine):
            stack.enter_context(Asking(server.port)).ask_all(scene.prepare())
        warm_up_s = setting.warm_up_s
        for workload in scene.workloads:
            measure = partial(_measured, workload, java, mine, setting, warm_up_s, folder)
            rows += rows_or_reason((workload.name,), measure)
            warm_up_s = setting.further_warm_up_s
    return rows


def _measured(
    workload: Workload, java: Server, mine: Server, setting: Setting, warm_up_s: float, folder: Path
) -> list[Row]:
    file = write_frames(workload, folder)
    with ExitStack() as stack:
        java_side = stack.enter_context(loaded(java, workload, file, setting, warm_up_s))
        our_side = stack.enter_context(loaded(mine, workload, file, setting, setting.our_warm_up_s))
        sides = [java_side, our_side]
        if workload.canned_goal is not None:
            answer = folder / "answer"
            with Asking(mine.port) as asking:
                answer.write_bytes(asking.ask_raw(next(iter(workload.frames()))))
            program, core = setting.program("canned"), setting.server_core
            bare = stack.enter_context(canned(program, free_port(), answer, core=core))
            sides.append(stack.enter_context(loaded(bare, workload, file, setting, setting.our_warm_up_s)))
        rotate(workload, sides, setting)
    rows = [row(workload.name, workload.goal, "", java_side, our_side, setting)]
    if workload.canned_goal is not None:
        name = f"{workload.name}, against canned bytes"
        rows.append(row(name, workload.canned_goal, "bare epoll server: ", sides[2], our_side, setting))
    return rows


def write_frames(workload: Workload, folder: Path) -> Path:
    """Write the frames of a workload into a file of that folder, for its generators."""
    return frame_file(folder / "frames", workload.frames())


@contextmanager
def loaded(
    server: Server, workload: Workload, frames: Path, setting: Setting, warm_up_s: float
) -> Iterator[Side]:
    """A side whose generator has its connections and has sent the workload for so long."""
    stream = Stream(workload.connections, frames)
    with Load(setting.program("load"), server.port, [stream]) as load:
        load.run(warm_up_s, _mode(workload))
        yield Side(server, load, [])


def rotate(workload: Workload, sides: Sequence[Side], setting: Setting) -> None:
    """Measure each side once a round, one after the other, forwards and backwards alternately."""
    for number in range(setting.rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            side.samples.append(
                sampled(workload.name, side.server, side.load, _mode(workload), setting.seconds)
            )


def _mode(workload: Workload) -> str:
    return f"0=closed:{workload.depth}"


def sampled(name: str, server: Server, load: Load, mode: str, seconds: float) -> Sample:
    """Run a load of one stream once; RuntimeError if a reply is missing or an error."""
    before = server.cpu_seconds()
    (sample,) = load.run(seconds, mode)
    if sample.errors or sample.lost:
        raise RuntimeError(f"{name}: {server.name} erred {sample.errors}, lost {sample.lost}")
    return msgspec.structs.replace(sample, cpu_seconds=server.cpu_seconds() - before)


def row(name: str, goal: float | None, label: str, other: Side, mine: Side, setting: Setting) -> Row:
    """Return the row of two sides that were measured by rotation; without a goal it has no verdict."""
    ratio = mine.rate / other.rate
    return Row(
        name,
        label + _figures(other, setting),
        _figures(mine, setting),
        "" if goal is None else f"≥ {goal:g} times",
        f"**{ratio:.2f} times**",
        None if goal is None else ratio >= goal,
    )


def _figures(side: Side, setting: Setting) -> str:
    text = spread([sample.per_cpu_second for sample in side.samples])
    if setting.latencies:
        text += f", p99 {median_ms(side.samples, 'p99_us'):.1f} ms"
    busy = statistics.median(sample.cpu_seconds / sample.seconds for sample in side.samples)
    return text if busy >= IDLE else f"{text}, {busy:.0%} busy"
