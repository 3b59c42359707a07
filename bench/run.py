"""The bench: every row of bench/RESULTS.md, measured in one go (`make bench`).

    python -m bench.run [--only TEXT] [--rounds N] [--seconds S] [--warm-up S]

A complete run writes bench/RESULTS.md from what it measured, RESULTS.head.md and RESULTS.notes.md; with --only it
prints the rows whose name holds TEXT. `--rounds 1 --seconds 1 --warm-up 1` is for trying a row out: its figures mean
nothing. The brokers of a closed loop register once: one that takes more than 120 s in all is answered that they are
gone. Nothing here is a test: figures depend on the machine.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from bench import (
    big_scene,
    cold_start,
    estate,
    first_registration,
    guarded,
    many_releases,
    memory,
    open_loop,
    seen_everywhere,
    tables_compared,
    two_workers,
)
from bench.closed_loop import closed_loops
from bench.report import Row, report, rows_or_reason
from bench.setting import HERE, Setting, prepare
from bench.workloads import scenes

JAVA_WARM_UP_S = 25.0  # what its compilers need


class Measurement(msgspec.Struct, frozen=True):
    """A function that makes rows, and the names by which --only finds it."""

    names: tuple[str, ...]
    rows: Callable[[Setting], list[Row]]


def measurements(wanted: str) -> list[Measurement]:
    """Return the measurements whose names hold `wanted`, in the order of the report."""
    chosen = []
    for scene in scenes():
        workloads = tuple(load for load in scene.workloads if wanted in load.name)
        part = msgspec.structs.replace(scene, workloads=workloads)
        chosen.append(Measurement(tuple(load.name for load in workloads), partial(closed_loops, part)))
    chosen += [
        Measurement(many_releases.NAMES, partial(many_releases.many_releases, wanted)),
        Measurement(first_registration.NAMES, first_registration.first_registrations),
        Measurement(open_loop.NAMES, partial(open_loop.open_loops, wanted)),
        Measurement(estate.NAMES, partial(estate.estates, wanted)),
        Measurement(seen_everywhere.NAMES, seen_everywhere.seen_everywhere),
        Measurement(memory.NAMES, partial(memory.memory, wanted)),
        Measurement(big_scene.NAMES, big_scene.big_scene),
        Measurement(cold_start.NAMES, cold_start.cold_starts),
        Measurement(guarded.NAMES, partial(guarded.guarded, wanted)),
        Measurement(two_workers.NAMES, two_workers.two_workers),
        Measurement(tables_compared.NAMES, tables_compared.tables_compared),
    ]
    return [measurement for measurement in chosen if any(wanted in name for name in measurement.names)]


def main() -> None:
    """Run the bench and write bench/RESULTS.md, or a part of it and print its rows."""
    parser = argparse.ArgumentParser(description="name servers side by side")
    parser.add_argument("--only", default="", help="only rows whose name holds this")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each load against each server")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a run")
    parser.add_argument("--warm-up", type=float, default=JAVA_WARM_UP_S, help="seconds before a first run")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        setting = prepare(Path(scratch), rounds=given.rounds, seconds=given.seconds, warm_up_s=given.warm_up)
        rows: list[Row] = []
        for measurement in measurements(given.only):
            for row in rows_or_reason(measurement.names, partial(measurement.rows, setting)):
                print(row.line(), flush=True)
                rows.append(row)
    if not given.only:
        (HERE / "RESULTS.md").write_text(report(rows, setting))


if __name__ == "__main__":
    main()
