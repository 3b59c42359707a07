"""What rules cost: servers with rules beside one without, under the same load."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.asking import Asking
from bench.guarded import GUARDED, WITHOUT, Rules, access_file
from bench.servers import this_server
from bench.setting import HERE
from bench.workloads import lookups
from rocketmq_remoting.codes import ResponseCode
from testbed.ports import free_port


@pytest.mark.needs("cc")
@pytest.mark.conformance("AC-44")
@pytest.mark.parametrize(
    ("load", "goals"),
    [
        ("lookups, 4-broker routes, depth 1", (r"≥ 0\.98 times", r"≥ 0\.97 times")),
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


@pytest.mark.conformance("AC-44")
@pytest.mark.parametrize("rules", [WITHOUT, *GUARDED], ids=lambda rules: rules.name)
def test_a_server_answers_its_load_and_none_that_does_not_meet_its_rules(
    tmp_path: Path, rules: Rules
) -> None:
    options = {**rules.options, "MQNS_ACCESS_FILE": str(access_file(tmp_path))}
    plain = lookups(1)
    with (
        this_server(free_port(), tmp_path / "data", core=0, options=options) as server,
        Asking(server.port) as asking,
    ):
        for frames, admitted in ((plain, not rules.signs), (rules.frames(plain), True)):
            asking.send(next(iter(frames)))
            assert (asking.receive().code != ResponseCode.NO_PERMISSION) is admitted
