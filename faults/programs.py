"""The programs that rows need besides Redis and Java: where they are, and what they are."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

BUILT = Path(__file__).resolve().parent.parent / "build" / "bin"
"""The folder of programs that `make faults` builds."""
TOXIPROXY = "toxiproxy-server"
COMMANDS = (
    ("redis-server", "--version"),
    ("haproxy", "-v"),
    ("java", "-version"),
    (TOXIPROXY, "-version"),
    ("faketime", "--version"),
)


def program(name: str) -> str:
    """Return the path of a program; FileNotFoundError without one."""
    path = shutil.which(name, path=os.pathsep.join((str(BUILT), os.environ["PATH"], "/usr/sbin")))
    if path is None:
        raise FileNotFoundError(f"{name} is not installed: see `make faults`")
    return path


def versions() -> Iterator[str]:
    """Yield the first line of each program's version."""
    for name, *words in COMMANDS:
        said = subprocess.run([program(name), *words], capture_output=True, text=True, check=True)
        yield (said.stdout or said.stderr).strip().splitlines()[0].strip()
