"""`mqns agent`."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqns.broker.events import Failed, MinBrokerIdChanged, Registered, Unregistered
from mqns.cli.agent import _Listener
from mqns.cli.exit_codes import ExitCode
from mqns.cli.output import OutputFormat, Printer
from mqns.errors import ClientError
from rocketmq_remoting.codes import RequestCode
from testbed.eventually import eventually
from testbed.scene import Scene
from tests.mqns.cli.conftest import address, run

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


@contextmanager
def agent(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-m", "mqns.cli", "agent", *arguments, "-o", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
        env={"PATH": os.environ["PATH"], **environment},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_broker_is_announced_until_ctrl_c(scenes: list[Scene], broker_toml: Path) -> None:
    where = [address(scene.server) for scene in scenes]
    with agent("--config", str(broker_toml), "-n", ";".join(where)) as process:
        eventually(lambda: all(scene.has_route("TX") for scene in scenes), END_S)
        assert scenes[0].queues("TX")["broker-x"].read_queue_nums == 3
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=END_S)
    assert (process.returncode, err) == (0, b"")
    reported = [json.loads(line) for line in out.splitlines()]
    for event in ("Registered", "Unregistered"):
        assert sorted(e["address"] for e in reported if e["event"] == event) == sorted(where)
    assert not any(scene.brokers() for scene in scenes)


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        pytest.param(("--tls",), "Failed", id="a self-signed certificate"),
        pytest.param(("--tls", "--tls-insecure"), "Registered", id="any certificate"),
    ],
)
def test_it_speaks_tls(ns: Scene, broker_toml: Path, options: tuple[str, ...], reported: str) -> None:
    with agent("--config", str(broker_toml), "-n", address(ns.server), *options) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == reported
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=END_S)


def test_it_signs_what_it_sends(broker_toml: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        where = f"127.0.0.1:{listening.getsockname()[1]}"
        signed = ("--access-key", "agent-key")
        with agent("--config", str(broker_toml), "-n", where, *signed, MQNS_SECRET_KEY="secret"):
            listening.settimeout(END_S)
            connection, _ = listening.accept()
            with connection:
                assert b'"AccessKey":"agent-key"' in connection.recv(1 << 16)


@pytest.mark.parametrize("form", list(OutputFormat))
def test_pushes_of_a_hostile_name_server_fill_no_disk(
    form: OutputFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    listener = _Listener(Printer(form))
    for number in range(5_000):
        listener(MinBrokerIdChanged(number % 2, "x" * 30_000))
    for number in range(100):
        listener(Registered("127.0.0.1:9876", "x" * 900_000, str(number)))
    out = capsys.readouterr().out
    assert 5_000 < len(out) < 30_000


def test_what_is_wrong_with_the_file(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("brokerId = -1\n")
    for path in (broken, tmp_path / "none.toml"):
        ended = run("agent", "--config", str(path))
        assert ended.code == ExitCode.WRONG_USAGE
        assert ended.err.startswith(f"mqns: {path}: ")


def test_no_end_is_told_of_what_never_began(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name server accepts it all the same; it is sent, since a registration without an answer may have been made."""
    listener = _Listener(Printer(OutputFormat.TABLE))
    listener(Failed("ns1:9876", RequestCode.REGISTER_BROKER, ClientError("refused")))
    listener(Registered("ns2:9876"))
    listener(Failed("ns2:9876", RequestCode.REGISTER_BROKER, ClientError("away")))
    listener(Unregistered("ns1:9876"))
    listener(Unregistered("ns2:9876"))
    printed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert [line for line in printed if line[0] == "Unregistered"] == [["Unregistered", "address=ns2:9876"]]
