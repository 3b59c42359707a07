"""What rules cost: servers with rules beside one without, under the same load."""

import re
import subprocess
import sys

import pytest

from bench.setting import HERE


@pytest.mark.needs("cc")
@pytest.mark.parametrize(
    ("load", "goals"),
    [
        ("lookups, 4-broker routes, depth 16", (r"≥ 0\.98 times", r"≥ 0\.97 times")),
        ("unchanged registration, 10 topics, 200 brokers", ("", "")),
    ],
)
def test_all_servers_answer_their_load(load: str, goals: tuple[str, str]) -> None:
    lengths = ["--rounds", "1", "--seconds", "1", "--warm-up", "0.1"]  # shorter ones may take no CPU tick
    ended = subprocess.run(
        [sys.executable, "-m", "bench.run", "--only", f"{load}, ", *lengths],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    for line, rules, goal in zip(
        lines, ("rules met by address", "rules met by signature"), goals, strict=True
    ):
        figures = rf"without rules: [\d,]+ .* \| [\d,]+ .* \| {goal} \| \*\*[\d.]+ times\*\* \| .*\|"
        assert re.fullmatch(rf"\| {load}, {rules} \| {figures}", line), line
