"""Closed loops of the bench on this tree and on another checkout of it: whether a change made something slower.

    python -m bench.against CHECKOUT [--only TEXT] [--rounds N] [--seconds S] [--warm-up S]

The other checkout needs its own `make compiled`. A line has both sides' replies per second of CPU time, as in
bench/closed_loop.py, and the median of the rounds' ratios, this tree's over the other's: the two runs of a round see
the same moment of a machine whose speed changes.
"""

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

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
            for row in compared(scene, other, (given.only,), setting):
                print(row.line(), flush=True)


class Compared(msgspec.Struct, frozen=True):
    """Replies per second of CPU time to a workload, of both sides in each round."""

    name: str
    theirs: list[float]
    ours: list[float]

    @property
    def ratios(self) -> list[float]:
        """This tree's over the other's, of each round."""
        return [mine / other for other, mine in zip(self.theirs, self.ours, strict=True)]

    def line(self) -> str:
        """Return the median ratio, and what it is made of."""
        return (
            f"{statistics.median(self.ratios):.3f}  {self.name}: {spread(self.ours)} to {spread(self.theirs)}"
        )


def compared(scene: Scene, other: Path, wanted: Sequence[str], setting: Setting) -> Iterator[Compared]:
    """Yield each workload of the scene whose name contains one of `wanted`; both servers stay up for all."""
    workloads = [load for load in scene.workloads if any(text in load.name for text in wanted)]
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
            yield Compared(workload.name, *rates)


if __name__ == "__main__":
    main()
