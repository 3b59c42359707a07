"""Closed loops of the bench on this tree and on another checkout of it: whether a change made something slower.

    python -m bench.against CHECKOUT [--only TEXT] [--rounds N] [--seconds S] [--warm-up S]

The other checkout needs its own `make compiled`. A line has both sides' replies per second of CPU time, as in
bench/closed_loop.py, and the median of the rounds' ratios, this tree's over the other's: the two runs of a round see
the same moment of a machine whose speed changes.
"""

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.asking import Asking
from bench.closed_loop import loaded, rotate, write_frames
from bench.report import spread
from bench.servers import MQNAMESRV, this_server
from bench.setting import OURS_WARM_UP_S, Setting, prepare
from bench.workloads import Scene, scenes
from testbed.ports import free_port


def main() -> None:
    """Print a line for each workload whose name contains --only."""
    parser = argparse.ArgumentParser(description="two trees side by side")
    parser.add_argument("checkout", type=Path, help="the root of the other tree")
    parser.add_argument("--only", default="", help="only workloads whose name contains this")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each load against each tree")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a run")
    parser.add_argument("--warm-up", type=float, default=OURS_WARM_UP_S, help="seconds before a first run")
    given = parser.parse_args()
    other = given.checkout.resolve() / ".venv/bin/mqnamesrv"
    with tempfile.TemporaryDirectory() as scratch:
        setting = prepare(Path(scratch), rounds=given.rounds, seconds=given.seconds, warm_up_s=given.warm_up)
        for scene in scenes():
            for line in compared(scene, other, given.only, setting):
                print(line, flush=True)


def compared(scene: Scene, other: Path, wanted: str, setting: Setting) -> Iterator[str]:
    """Yield a line for each workload of the scene whose name contains `wanted`; both servers stay up for all."""
    workloads = [workload for workload in scene.workloads if wanted in workload.name]
    if not workloads:
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = [
            stack.enter_context(
                this_server(free_port(), folder / side, core=setting.server_core, program=program)
            )
            for side, program in (("other", other), ("this", MQNAMESRV))
        ]
        for server in servers:
            stack.enter_context(Asking(server.port)).ask_all(scene.prepare())
        for workload in workloads:
            file = write_frames(workload, folder)
            with ExitStack() as loads:
                theirs, ours = sides = [
                    loads.enter_context(loaded(server, workload, file, setting, setting.warm_up_s))
                    for server in servers
                ]
                rotate(workload, sides, setting)
            rates = [[sample.per_cpu_second for sample in side.samples] for side in (theirs, ours)]
            ratio = statistics.median(mine / other for other, mine in zip(*rates, strict=True))
            yield f"{ratio:.3f}  {workload.name}: {spread(rates[1])} to {spread(rates[0])}"


if __name__ == "__main__":
    main()
