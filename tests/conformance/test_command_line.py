"""The command `mqnamesrv` (docs/conformance.md, CFG-12 to CFG-20)."""

import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from registry.options.load import read_properties
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.properties import parse_properties
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import COMMAND, NameServer, environment

USAGE = "usage: mqnamesrv [-c <arg>] [-h] [-n <arg>] [-p]"


@pytest.fixture(scope="module")
def configured(new_server: Callable[..., NameServer]) -> Iterator[NameServer]:
    """A server started with -c."""
    server = new_server("configured", {})
    (server.folder / "namesrv.conf").write_text("orderMessageEnable=true\nunknownKey=this\n")
    try:
        yield server.start("-c", str(server.folder / "namesrv.conf"))
    finally:
        server.stop()


def listed(server: NameServer) -> dict[str, str]:
    """The answer of 319."""
    connection = Connection(server.port)
    text = connection.ask(RequestCode.GET_NAMESRV_CONFIG).body.decode()
    connection.close()
    return parse_properties(text)


@pytest.mark.conformance("CFG-12", "CFG-13")
def test_a_configuration_file(configured: NameServer) -> None:
    assert listed(configured)["orderMessageEnable"] == "true"
    assert listed(configured)["unknownKey"] == "this"
    assert f"load config properties file OK, {configured.folder / 'namesrv.conf'}\n" in configured.said()


@pytest.mark.conformance("CFG-14")
def test_an_update_goes_to_the_configuration_file(configured: NameServer) -> None:
    file = configured.folder / "namesrv.conf"
    before = file.read_text()
    connection = Connection(configured.port)
    assert connection.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=false").code == 0
    connection.close()
    eventually(lambda: read_properties(file)["orderMessageEnable"] == "false")
    assert file.with_name("namesrv.conf.bak").read_text() == before


def run(folder: Path, *arguments: str, **env: str | None) -> subprocess.CompletedProcess[str]:
    """The command until it ends by itself; `env` adds variables, None takes one away."""
    variables = environment(folder, {}) | env
    return subprocess.run(
        [COMMAND, *arguments],
        env={name: text for name, text in variables.items() if text is not None},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


@pytest.mark.conformance("CFG-15", "CFG-19")
def test_options_are_printed(tmp_path: Path) -> None:
    done = run(tmp_path, "-p", MQNS_LISTEN_PORT=None, MQNS_BIND_ADDRESS=None)
    assert done.returncode == 0
    printed = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert (printed["orderMessageEnable"], printed["rocketmqHome"]) == ("false", str(tmp_path))
    assert (printed["listenPort"], printed["bindAddress"]) == ("9876", "0.0.0.0")


@pytest.mark.conformance("CFG-16", "CFG-17")
@pytest.mark.parametrize(("argument", "code"), [("-h", 0), ("-x", 1)])
def test_the_usage_is_printed(tmp_path: Path, argument: str, code: int) -> None:
    done = run(tmp_path, argument)
    assert done.returncode == code
    assert USAGE in done.stdout.splitlines()


@pytest.mark.conformance("CFG-18")
def test_no_home(tmp_path: Path) -> None:
    done = run(tmp_path, ROCKETMQ_HOME=None)
    assert done.returncode == 254
    assert done.stdout.startswith("Please set the ROCKETMQ_HOME variable in your environment")


@pytest.mark.conformance("CFG-19")
def test_what_is_said_at_the_start(configured: NameServer) -> None:
    """The port is any but 9876 here, which another process may have."""
    said = re.findall(r"^The Name Server boot success\. (.*)$", configured.said(), re.MULTILINE)
    assert said == [f"serializeType=JSON, address 127.0.0.1:{configured.port}"]


@pytest.mark.conformance("CFG-20")
def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run(tmp_path, MQNS_LISTEN_PORT=port)
    assert done.returncode != 0
    assert "boot success" not in done.stdout
    assert port in done.stderr
