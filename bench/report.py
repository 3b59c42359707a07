"""Rows of bench/RESULTS.md: what was aimed at, what was measured, and whether that is enough."""

import os
import platform
import statistics
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from bench.generator import Sample
from bench.java import JAVA_VERSION
from bench.setting import HERE, Setting

LIBRARIES = ("redis", "hiredis", "uvloop", "msgspec", "gunicorn")
HEADINGS = ("load", "other side", "this server", "goal", "measured", "")


class Row(msgspec.Struct, frozen=True):
    """One line of the table. `reached` None: there is nothing to judge, and `measured` says why."""

    load: str
    other: str
    ours: str
    goal: str
    measured: str
    reached: bool | None

    def line(self) -> str:
        verdict = {True: "reached", False: "**missed**", None: ""}[self.reached]
        return table_line((self.load, self.other, self.ours, self.goal, self.measured, verdict))


def table_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def report(rows: Sequence[Row], setting: Setting) -> str:
    """The whole of RESULTS.md, between what people wrote in RESULTS.head.md and RESULTS.notes.md."""
    table = [table_line(HEADINGS), "|" + "---|" * len(HEADINGS), *(row.line() for row in rows)]
    written = [_written("RESULTS.head.md"), _conditions(setting), "\n".join(table)]
    return "\n\n".join([*written, _written("RESULTS.notes.md")]).rstrip() + "\n"


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Median, least and most."""
    least, most = min(values), max(values)
    return f"{statistics.median(values):,.{digits}f} ({least:,.{digits}f}-{most:,.{digits}f})"


def median_ms(samples: Sequence[Sample], field: str) -> float:
    """The median of a latency of samples, such as `p99_us`, in ms."""
    return float(statistics.median(getattr(sample, field) for sample in samples)) / 1000


def _written(name: str) -> str:
    path = HERE / name
    return path.read_text().strip() if path.exists() else ""


def _conditions(setting: Setting) -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    clock = "" if setting.latencies else " The clock of neither core moves evenly, so latencies are left out."
    return (
        f"Machine: {os.cpu_count()} cores, {processor()}, Linux {platform.release()}; "
        f"Python {platform.python_version()}, {libraries}; Java's server {JAVA_VERSION}. "
        f"Median of {setting.rounds} runs of {setting.seconds:g} s, least and most in brackets.{clock}"
    )


def processor() -> str:
    """What this machine calculates with."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
