"""The command's arguments, messages and exit codes, from a real process; expectations from Java's 5.5.0."""

import json
import re
import socket
from pathlib import Path

import pytest

from mqnamesrv.store import EmbeddedStore
from tests.mqnamesrv.process import environment, mqnamesrv

USAGE = """\
usage: mqnamesrv [-c <arg>] [-h] [-n <arg>] [-p]
 -c,--configFile <arg>    Name server config properties file
 -h,--help                Print help
 -n,--namesrvAddr <arg>   Name server address list, eg: '192.168.0.1:9876;192.168.0.2:9876'
 -p,--printConfigItem     Print all config items
"""
VERSIONS = re.compile(r"mqnamesrv \S+, Python \S+, redis \S+, rq \S+, gunicorn \S+\n")


@pytest.mark.conformance("CFG-16", "CFG-17")
@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        pytest.param(["-h"], 0, "", id="help"),
        pytest.param(["--help"], 0, "", id="long help"),
        pytest.param(["-x"], 1, "Unrecognized option: -x\n", id="unknown"),
        pytest.param(["--nope"], 1, "Unrecognized option: --nope\n", id="unknown long"),
        pytest.param(["-x", "-h"], 1, "Unrecognized option: -x\n", id="unknown before help"),
        pytest.param(["-c"], 1, "Missing argument for option: c\n", id="no file"),
        pytest.param(["-n"], 1, "Missing argument for option: n\n", id="no addresses"),
    ],
)
def test_usage(tmp_path: Path, arguments: list[str], code: int, complaint: str) -> None:
    done = mqnamesrv(*arguments, env=environment(tmp_path))
    assert (done.returncode, done.stderr) == (code, complaint)
    assert done.stdout.startswith(USAGE)


def test_version(tmp_path: Path) -> None:
    done = mqnamesrv("--version", env=environment(tmp_path, ROCKETMQ_HOME=""))
    assert (done.returncode, done.stderr) == (0, "")
    assert VERSIONS.fullmatch(done.stdout)


@pytest.mark.conformance("CFG-15")
@pytest.mark.parametrize(
    "arguments", [["-p"], ["--printConfigItem"], ["a stray word", "-p"], ["-n", "a:1", "-p"]]
)
def test_print(tmp_path: Path, arguments: list[str]) -> None:
    env = environment(tmp_path, ROCKETMQ_HOME="")
    done = mqnamesrv(*arguments, env=env)
    printed = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert done.returncode == 0
    assert printed["kvConfigPath"] == f"{tmp_path}/namesrv/kvConfig.json"
    assert printed["serverChannelMaxIdleTimeSeconds"] == "120"
    assert printed["connectTimeoutMillis"] == "3000"
    assert printed["rocketmqHome"] == ""


@pytest.mark.conformance("CFG-12")
@pytest.mark.parametrize("spelling", ["-c {}", "--configFile {}", "--configFile={}", "--config {}", "-c{}"])
def test_print_of_a_file(tmp_path: Path, spelling: str) -> None:
    file = tmp_path / "n.properties"
    file.write_text("orderMessageEnable = true\n# a comment\nlistenPort: 12\n")
    env = {name: value for name, value in environment(tmp_path).items() if name != "MQNS_LISTEN_PORT"}
    done = mqnamesrv(*(word.format(file) for word in spelling.split()), "-p", env=env)
    lines = done.stdout.splitlines()
    assert lines[0] == f"load config properties file OK, {file}"
    assert {"orderMessageEnable=true", "listenPort=12", f"configStorePath={file}"} <= set(lines)


def test_names_that_are_no_option_are_logged(tmp_path: Path) -> None:
    file = tmp_path / "n.properties"
    file.write_text("orderMessageEnabled=true\n")
    done = mqnamesrv("-c", str(file), "-p", env=environment(tmp_path, MQNS_LISTN_PORT="1"))
    assert done.returncode == 0
    first, second = done.stderr.splitlines()
    assert "orderMessageEnabled is no option and has no effect; did you mean orderMessageEnable?" in first
    assert "MQNS_LISTN_PORT is no option and has no effect; did you mean MQNS_LISTEN_PORT?" in second


@pytest.mark.conformance("CFG-18")
def test_no_home(tmp_path: Path) -> None:
    done = mqnamesrv(env=environment(tmp_path, ROCKETMQ_HOME=""))
    assert done.returncode == 254
    assert done.stdout == (
        "Please set the ROCKETMQ_HOME variable in your environment"
        " to match the location of the RocketMQ installation\n"
    )


@pytest.mark.parametrize(
    ("arguments", "more", "complaint"),
    [
        pytest.param(
            ["-c", "/nonexistent"], {}, "No such file or directory: '/nonexistent'", id="no such file"
        ),
        pytest.param([], {"MQNS_HTTP_PORT": "x"}, "MQNS_HTTP_PORT=x", id="bad variable"),
        pytest.param([], {"MQNS_NAMESPACE": "a{b"}, "namespace: 'a{b'", id="bad namespace"),
        pytest.param(
            [], {"MQNS_LISTEN_PORT": "70000"}, "cannot listen on 127.0.0.1:70000", id="no port number"
        ),
    ],
)
def test_failed_start(tmp_path: Path, arguments: list[str], more: dict[str, str], complaint: str) -> None:
    done = mqnamesrv(*arguments, env=environment(tmp_path, **more))
    assert done.returncode == 255
    assert done.stderr.startswith("mqnamesrv: ")
    assert complaint in done.stderr
    assert not (tmp_path / "data").exists()  # refused before anything was started


def test_a_redis_that_refuses_us(tmp_path: Path, store: EmbeddedStore) -> None:
    done = mqnamesrv(env=environment(tmp_path, REDIS_URL=f"unix://no-such-user:wrong@{store.socket}"))
    assert done.returncode == 255
    assert done.stderr.startswith("mqnamesrv: the store refuses us: ")


@pytest.mark.conformance("CFG-20")
@pytest.mark.parametrize("port", ["MQNS_LISTEN_PORT", "MQNS_HTTP_PORT"])
def test_port_in_use(tmp_path: Path, port: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        done = mqnamesrv(env=environment(tmp_path, **{port: str(number)}))
    assert done.returncode == 255
    assert f"cannot listen on 127.0.0.1:{number}: [Errno 98] Address already in use" in done.stderr


def test_a_kv_file_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "kvConfig.json"
    file.write_text("{")
    done = mqnamesrv(env=environment(tmp_path, MQNS_KV_CONFIG_PATH=str(file)))
    assert done.returncode == 255
    assert done.stderr.startswith(f"mqnamesrv: {file}: ")


def test_export_of_an_empty_store(tmp_path: Path) -> None:
    done = mqnamesrv("--exportKv", f"{tmp_path}/kv.json", env=environment(tmp_path))
    assert done.stdout == f"0 KV namespaces written to {tmp_path}/kv.json\n"
    assert json.loads((tmp_path / "kv.json").read_text()) == {"configTable": {}}
