"""`python -m bench.against`: this tree beside another checkout, here itself."""

import re
import subprocess
import sys

import pytest

from bench.setting import HERE


@pytest.mark.needs("cc")
def test_both_trees_are_measured() -> None:
    lengths = ["--rounds", "1", "--seconds", "1", "--warm-up", "0.1"]  # shorter ones may take no CPU tick
    ended = subprocess.run(
        [sys.executable, "-m", "bench.against", str(HERE.parent), "--only", "cluster info", *lengths],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert re.fullmatch(
        r"\d+\.\d{3}  cluster info, 300 brokers: [\d,]+ \(.*\) to [\d,]+ \(.*\)\n", ended.stdout
    )
