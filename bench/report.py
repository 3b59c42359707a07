"""Rows of bench/RESULTS.md: goal, figures and verdict."""

import os
import platform
import statistics
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from bench.generator import Sample
from bench.java import JAVA_VERSION
from bench.setting import HERE, Setting

LIBRARIES = ("redis", "hiredis", "uvloop", "msgspec", "gunicorn")
HEADINGS = ("load", "other side", "this server", "goal", "measured", "")


class Row(msgspec.Struct, frozen=True):
    """One line of the table. `reached` is None without a verdict; `measured` then says why."""

    load: str
    other: str
    this_server: str
    goal: str
    measured: str
    reached: bool | None

    def line(self) -> str:
        verdict = {True: "reached", False: "**missed**", None: ""}[self.reached]
        return table_line((self.load, self.other, self.this_server, self.goal, self.measured, verdict))


def table_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def rows_or_reason(names: Sequence[str], measure: Callable[[], list[Row]]) -> list[Row]:
    """Return what is measured; an exception becomes rows of these names that say why, so that others' rows are kept."""
    try:
        return measure()
    except (RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())
        return [Row(name, "", "", "", f"not measured: {reason}", False) for name in names]


def report(rows: Sequence[Row], setting: Setting) -> str:
    """Return RESULTS.md: RESULTS.head.md, the table, RESULTS.notes.md."""
    table = [table_line(HEADINGS), "|" + "---|" * len(HEADINGS), *(row.line() for row in rows)]
    written = [_written("RESULTS.head.md"), _conditions(setting), "\n".join(table)]
    return "\n\n".join([*written, _written("RESULTS.notes.md")]).rstrip() + "\n"


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Return median, least and most as text."""
    least, most = min(values), max(values)
    return f"{statistics.median(values):,.{digits}f} ({least:,.{digits}f}-{most:,.{digits}f})"


def median_ms(samples: Sequence[Sample], field: str) -> float:
    """Return the median of a latency of samples, such as `p99_us`, in ms."""
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
    """Return the name of this machine's processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
