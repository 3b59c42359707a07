"""Processes end without a last collection, which took a third of the CPU time of a short one."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count()))  # called last
{}
"""


@pytest.mark.parametrize(
    "begin", ["from mqns.cli.main import main; main()", "from mqnamesrv.cli import main; main()"]
)
def test_objects_are_frozen_at_the_end(begin: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(begin), "--help"],
        capture_output=True,
        text=True,
    )
    assert int(done.stdout.split()[-1]) > 0
