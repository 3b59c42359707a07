"""Latencies under a load that comes by a schedule, whether or not the server keeps up: Java's server and this one.

A latency counts from when a request was due, so a server that falls behind cannot hide it."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from bench.asking import Asking
from bench.generator import Load, Sample, Stream, frame_file
from bench.java import java_name_server
from bench.report import Row, median_ms, rows_or_reason
from bench.servers import Server, this_server
from bench.setting import Setting
from bench.workloads import lookups, registered, topic_changes
from testbed.ports import free_port

BROKERS = 4
TOPICS = 100
GROWING = 50  # topics that grow before they shrink
CONNECTIONS = 200
HELD = 0.99  # of the answers due, within the time; the rest of them is on its way
HIGH_P99_MS = 10.0


class Open(msgspec.Struct, frozen=True):
    """An open loop. `goal` is the p99 as a fraction of Java's; None: HIGH_P99_MS, without Java's server."""

    name: str
    modes: tuple[str, ...]
    goal: float | None


LOADS = (
    Open("open loop, 20,000 lookups a second", ("0=open:20000",), 0.6),
    Open("open loop, 40,000 lookups a second", ("0=open:40000",), None),
    Open("open loop, 10,000 lookups and 50 topic changes a second", ("0=open:10000", "1=open:50"), 0.8),
)
NAMES = tuple(load.name for load in LOADS)


def open_loops(wanted: str, setting: Setting) -> list[Row]:
    """Return the rows of the loads whose name holds `wanted`; only lookups are measured."""
    rows: list[Row] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        core = setting.server_core
        java = stack.enter_context(java_name_server(free_port(), folder / "java", core=core))
        mine = stack.enter_context(this_server(free_port(), folder / "ours", core=core))
        for server in (java, mine):
            stack.enter_context(Asking(server.port)).ask_all(registered(BROKERS, TOPICS)())
        streams = [
            Stream(CONNECTIONS, frame_file(folder / "lookups", lookups(TOPICS))),
            Stream(BROKERS, frame_file(folder / "changes", topic_changes(BROKERS, TOPICS, GROWING))),
        ]
        warm_up_s = setting.warm_up_s
        for load in (load for load in LOADS if wanted in load.name):
            measure = partial(_measured, load, java, mine, streams, setting, warm_up_s)
            rows += rows_or_reason((load.name,), measure)
            warm_up_s = setting.further_warm_up_s
    return rows


def _measured(
    load: Open, java: Server, mine: Server, streams: Sequence[Stream], setting: Setting, warm_up_s: float
) -> list[Row]:
    program = setting.program("load")
    with Load(program, java.port, streams) as java_load, Load(program, mine.port, streams) as our_load:
        return [_row(load, java_load, our_load, setting, warm_up_s)]


def _row(load: Open, java: Load, mine: Load, setting: Setting, warm_up_s: float) -> Row:
    sides = (
        [(mine, setting.our_warm_up_s)]
        if load.goal is None
        else [(java, warm_up_s), (mine, setting.our_warm_up_s)]
    )
    for side, seconds in sides:
        side.run(seconds, *load.modes)
    taken: list[list[Sample]] = [[] for _ in sides]
    for _ in range(setting.rounds):
        for (side, _), samples in zip(sides, taken, strict=True):
            samples.append(_lookups(load, side.run(setting.seconds, *load.modes)))
    if load.goal is None:
        return _held(load, taken[0], setting)
    return _against_java(load, load.goal, taken[0], taken[1], setting)


def _lookups(load: Open, samples: list[Sample]) -> Sample:
    for sample in samples:
        if sample.errors:
            raise RuntimeError(f"{load.name}: {sample.errors} answers were errors")
    return samples[0]


def _against_java(load: Open, part: float, java: list[Sample], mine: list[Sample], setting: Setting) -> Row:
    goal = f"p99 ≤ {part:g} of Java's"
    if not setting.latencies:
        return Row(load.name, "", "", goal, "no clock good enough", None)
    ratio = median_ms(mine, "p99_us") / median_ms(java, "p99_us")
    return Row(load.name, _figures(java), _figures(mine), goal, f"**{ratio:.2f}**", ratio <= part)


def _held(load: Open, mine: list[Sample], setting: Setting) -> Row:
    rate = min(sample.per_second for sample in mine)
    due = mine[0].sent / setting.seconds
    goal = f"held, p99 < {HIGH_P99_MS:g} ms"
    if not setting.latencies:
        return Row(load.name, "", f"{rate:,.0f}/s", goal, "no clock good enough", None)
    p99_ms = median_ms(mine, "p99_us")
    lost = sum(sample.lost for sample in mine)
    reached = rate >= HELD * due and not lost and p99_ms < HIGH_P99_MS
    return Row(load.name, "", _figures(mine), goal, f"**{rate:,.0f}/s, {p99_ms:.1f} ms**", reached)


def _figures(samples: list[Sample]) -> str:
    quantiles = ", ".join(
        f"{name} {median_ms(samples, field):.2f}"
        for name, field in (("p50", "p50_us"), ("p99", "p99_us"), ("p99.9", "p999_us"))
    )
    late = max(sample.late_us for sample in samples) / 1000
    lost = sum(sample.lost for sample in samples)
    return f"{quantiles} ms (generator late by {late:.2f} at worst)" + (f", {lost:,} lost" if lost else "")
