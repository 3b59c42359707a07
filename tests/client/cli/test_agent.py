"""`mqns agent`."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from client.cli.exits import ExitCode
from tests.client.cli.conftest import address, run
from tests.harness.patience import eventually
from tests.harness.scene import Scene

END_S = 20.0
BROKER = """
brokerName = "broker-x"
brokerClusterName = "c1"
brokerIP1 = "127.10.0.9"
[[topics]]
topicName = "TX"
readQueueNums = 3
writeQueueNums = 3
"""


@pytest.fixture
def broker_toml(tmp_path: Path) -> Path:
    path = tmp_path / "broker.toml"
    path.write_text(BROKER)
    return path


def test_a_broker_is_announced_until_ctrl_c(scenes: list[Scene], broker_toml: Path) -> None:
    where = [address(scene.server) for scene in scenes]
    command = ["agent", "--config", str(broker_toml), "-n", ";".join(where), "-o", "json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "client.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
        env={"PATH": os.environ["PATH"]},
    )
    try:
        eventually(lambda: all(scene.known("TX") for scene in scenes), END_S)
        assert scenes[0].queues("TX")["broker-x"].read_queue_nums == 3
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=END_S)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, b"")
    told = [json.loads(line) for line in out.splitlines()]
    for event in ("Registered", "Unregistered"):
        assert sorted(e["address"] for e in told if e["event"] == event) == sorted(where)
    assert not any(scene.brokers() for scene in scenes)


def test_what_is_wrong_with_the_file(tmp_path: Path, broker_toml: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("brokerId = -1\n")
    for path in (broken, tmp_path / "none.toml"):
        ended = run("agent", "--config", str(path))
        assert ended.code == ExitCode.WRONG_USAGE
        assert ended.err.startswith(f"mqns: {path}: ")
    unfit = run("agent", "--config", str(broker_toml), "--tls", "--tls-insecure")
    assert (unfit.code, unfit.err) == (
        ExitCode.WRONG_USAGE,
        "mqns: the agent neither speaks TLS nor signs requests\n",
    )
