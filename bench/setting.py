"""The setting of a run of the bench: cores, clock, and length and number of measurements."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

HERE = Path(__file__).resolve().parent
STILL_US = 100.0  # a clock that stands still for longer is too coarse for latencies
OURS_WARM_UP_S = 3.0  # connections and caches; there is nothing to compile
FURTHER_WARM_UP_S = 10.0


class Setting(msgspec.Struct, frozen=True):
    """`scratch` holds the programs and whatever a row writes; `latencies` is false when no clock is good enough.

    `warm_up_s` is for Java's compilers, before the first row on a server of Java's."""

    scratch: Path
    server_core: int
    load_core: int
    latencies: bool
    rounds: int
    seconds: float
    warm_up_s: float

    @property
    def further_warm_up_s(self) -> float:
        """Before each further row on a server that is warm."""
        return min(self.warm_up_s, FURTHER_WARM_UP_S)

    @property
    def our_warm_up_s(self) -> float:
        return min(self.warm_up_s, OURS_WARM_UP_S)

    def program(self, name: str) -> Path:
        """`load` or `canned`."""
        return self.scratch / name


def prepare(scratch: Path, *, rounds: int, seconds: float, warm_up_s: float) -> Setting:
    """Compile the programs, choose the cores by their clocks, and stay on the load's core from now on."""
    for name in ("load", "canned"):
        compile_program(name, scratch)
    cores = sorted(os.sched_getaffinity(0))
    server_core, load_core, latencies = choose_cores(
        {core: clock_still_us(scratch / "load", core) for core in (cores[0], cores[-1])}
    )
    os.sched_setaffinity(0, {load_core})
    return Setting(scratch, server_core, load_core, latencies, rounds, seconds, warm_up_s)


def choose_cores(still_us: Mapping[int, float]) -> tuple[int, int, bool]:
    """Return the server's core, the load's and whether its clock is good, by how long each core's clock stands still.

    The load's is the last core, unless only the first has a good clock."""
    first, last = min(still_us), max(still_us)
    if still_us[last] > STILL_US >= still_us[first]:
        return last, first, True
    return first, last, still_us[last] <= STILL_US


def compile_program(name: str, folder: Path, *flags: str) -> Path:
    """bench/<name>.c -> the program in `folder`."""
    program = folder / name
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", *flags, "-o", program, HERE / f"{name}.c"], check=True)
    return program


def clock_still_us(load: Path, core: int) -> float:
    """Return for how long (us) at most a core's clock stands still within half a second."""
    out = subprocess.check_output(["taskset", "-c", str(core), load, "clock"])
    return float(msgspec.json.decode(out)["still_us"])
