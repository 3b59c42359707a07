"""What counting for metrics costs a remoting worker: this tree beside a copy of it that counts nothing, in one run.

    python -m bench.counting [--starts N] [--rounds N] [--seconds S] [--warm-up S] [--only TEXT]

Prints a table. A figure is replies per second of CPU time, as in bench/closed_loop.py; both servers are measured by
rotation, forwards and backwards. Other processes of the same program differ by 2 to 4 %, so all is started
--starts times, and the ratio is the median over all rounds of all starts. The last row is this tree beside another copy
of it that counts as well: how far from 1 a ratio is that means nothing. A busy machine gives no number to compare."""

import argparse
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.against import Compared, compared
from bench.report import processor, spread
from bench.setting import OURS_WARM_UP_S, Setting, prepare
from bench.uncounted import copied
from bench.workloads import scenes

ROWS: Final = (
    *("lookups, 4-broker routes, depth 1", "lookups, 4-broker routes, depth 16"),
    *("data-version query (322), 200 brokers", "broker heartbeat (904), 200 brokers"),
    "unchanged registration, 10 topics, 200 brokers",
)
CONTROL: Final = "the same code twice: "
CONTROLLED: Final = ROWS[:1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="what counting costs")
    parser.add_argument("--starts", type=int, default=5, help="times that both servers are started")
    parser.add_argument(
        "--rounds", type=int, default=6, help="runs of each load against each server, for a start"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a run")
    parser.add_argument("--warm-up", type=float, default=OURS_WARM_UP_S, help="seconds before a first run")
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    given = parser.parse_args()
    rows = [name for name in ROWS if given.only in name]
    with tempfile.TemporaryDirectory() as scratch:
        without = copied(Path(scratch) / "uncounted")
        with_all = copied(Path(scratch) / "counted", cuts={})
        setting = prepare(Path(scratch), rounds=given.rounds, seconds=given.seconds, warm_up_s=given.warm_up)
        measured = defaultdict[str, list[Compared]](list)
        for _ in range(given.starts):
            for row in _compared(without, rows, setting):
                measured[row.name].append(row)
            for row in _compared(with_all, CONTROLLED if not given.only else (), setting):
                measured[CONTROL + row.name].append(row)
    print("\n".join(_table(measured, given.starts, setting)))


def _compared(program: Path, rows: Sequence[str], setting: Setting) -> Iterator[Compared]:
    for scene in scenes():
        for row in compared(scene, program, rows, setting):
            if row.name in rows:
                yield row


def _table(measured: Mapping[str, Sequence[Compared]], starts: int, setting: Setting) -> Iterator[str]:
    yield f"{os.cpu_count()} cores, {processor()}; {starts} starts, {setting.rounds} rounds of {setting.seconds:g} s."
    yield ""
    yield "| workload | without counting | with | ratio | of each start |"
    yield "|---|---|---|---|---|"
    for name, rows in measured.items():
        theirs = [rate for row in rows for rate in row.theirs]
        ours = [rate for row in rows for rate in row.ours]
        ratio = statistics.median(ratio for row in rows for ratio in row.ratios)
        each = ", ".join(f"{statistics.median(row.ratios):.3f}" for row in rows)
        yield f"| {name} | {spread(theirs)} | {spread(ours)} | **{ratio:.3f}** | {each} |"


if __name__ == "__main__":
    main()
