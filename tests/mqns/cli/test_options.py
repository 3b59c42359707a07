"""What holds for every command: its options, its formats, its exit codes."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import get_type_hints

import pytest
import yaml
from rich.console import Console

from mqns.cli.exit_codes import ExitCode
from mqns.cli.main import EXTRA
from mqns.cli.output import OutputFormat, Printer, plain
from mqns.cli.variables import misspelt
from mqns.remoting.acl import AclCredentials
from mqns.remoting.request import Request
from mqpipeline.options import PREFIX, Options
from registry.options.catalogue import VARIABLES
from registry.options.without_effect import KNOWN
from testbed.certificates import make_certificates
from testbed.nameserver import NameServer
from testbed.ports import free_port
from testbed.scene import Scene
from tests.mqns.cli.conftest import Mqns, address, http_side, run

ROUTE: dict[str, object] = {
    "topic": "TA",
    "brokerDatas": [
        {
            "cluster": "c1",
            "brokerName": "broker-a",
            "brokerAddrs": {"0": "127.10.0.1:10911"},
            "enableActingMaster": False,
            "zoneName": None,
        }
    ],
    "queueDatas": [
        {"brokerName": "broker-a", "readQueueNums": 8, "writeQueueNums": 8, "perm": 6, "topicSysFlag": 0}
    ],
    "filterServerTable": {},
    "orderTopicConf": None,
}


def test_json_yaml_and_table_say_the_same(ns: Scene, mqns: Mqns) -> None:
    ns.f1()
    assert json.loads(mqns("routes", "TA", "-o", "json").out) == [ROUTE]
    assert yaml.safe_load(mqns("routes", "TA", "-o", "yaml").out) == [ROUTE]
    assert mqns("routes", "TA").words == [
        ["TOPIC", "CLUSTER", "BROKER", "ADDRESSES", "READ", "WRITE", "PERM"],
        ["TA", "c1", "broker-a", "0=127.10.0.1:10911", "8", "8", "RW-"],
    ]


def test_options_go_before_the_command_or_after_it(servers: list[NameServer]) -> None:
    here = address(servers[0])
    for arguments in (("-n", here, "-o", "json", "topics"), ("topics", "-n", here, "--output", "json")):
        assert run(*arguments).document == []
    assert run("-n", "127.0.0.1:1", "topics", "-n", here).code == ExitCode.OK, (
        "the one after the command counts"
    )


def test_the_environment_names_the_name_servers(servers: list[NameServer]) -> None:
    assert run("topics", env={"NAMESRV_ADDR": address(servers[0])}).code == ExitCode.OK


def test_an_unreachable_server(unreachable: str) -> None:
    ended = run("topics", "-n", unreachable)
    assert (ended.code, ended.out) == (ExitCode.UNREACHABLE, "")
    assert ended.err.startswith(f"mqns: {unreachable}: not connected")
    assert len(ended.err.splitlines()) == 1


def test_no_answer_in_time(silent: str) -> None:
    began_at = time.monotonic()
    ended = run("topics", "-n", silent, "--timeout", "0.1")
    assert ended.code == ExitCode.TIMED_OUT
    assert ended.err == f"mqns: {silent}: no answer within 0.1 s\n"
    assert time.monotonic() - began_at < 5


def test_an_http_port_is_named(ns: Scene) -> None:
    where = http_side(ns.server).removeprefix("http://")
    ended = run("topics", "-n", where, "--timeout", "0.5")
    assert (ended.code, ended.err) == (
        ExitCode.TIMED_OUT,
        f"mqns: {where}: no answer within 0.5 s; this is an HTTP port, remoting is usually 9876\n",
    )


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_that_is_none(port: str) -> None:
    ended = run("topics", "-n", f"ns:{port}")
    assert ended.err == f"mqns: -n: no port from 1 to 65535 in the address 'ns:{port}'\n"


def test_what_is_not_there(mqns: Mqns) -> None:
    for arguments, reported in (
        (("routes", "NoSuch"), "no route of NoSuch"),
        (("kv", "get", "NoSuch", "k"), "no key k in namespace NoSuch"),
        (("kv", "list", "NoSuch"), "no namespace NoSuch"),
        (("brokers", "--cluster", "NoSuch"), "no cluster NoSuch"),
        (("config", "get", "noSuchOption"), "no option noSuchOption"),
    ):
        ended = mqns(*arguments)
        assert (ended.code, ended.err) == (ExitCode.REFUSED, f"mqns: {reported}\n")


def test_a_refusal_is_printed_with_its_code(mqns: Mqns, servers: list[NameServer]) -> None:
    ended = mqns("config", "set", "kvConfigPath", "elsewhere")
    assert ended.code == ExitCode.REFUSED
    assert (
        ended.err == f"mqns: {address(servers[0])} answered code 16: Can not update config in black list.\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("topics", "--no-such-option"),
        ("topics", "-n", "no-port:"),
        ("topics", "-n", ""),
        ("topics", "-n", " ; \n"),
        ("topics", "-o", "xml"),
        ("topics", "--timeout", "0"),
        ("topics", "--cluster", "c1", "--kind", "unit"),
        ("topics", "--tls-insecure"),
        ("topics", "--tls", "--tls-trust", __file__),
        ("topics", "--tls", "--tls-trust", "/no/such/file"),
        ("topics", "--access-key", "key"),
        ("routes",),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (ExitCode.WRONG_USAGE, "")
    assert ended.err


def test_tls(ns: Scene, mqns: Mqns) -> None:
    assert mqns("topics", "--tls").code == ExitCode.UNREACHABLE, "its certificate is its own"
    assert mqns("topics", "--tls", "--tls-insecure").code == ExitCode.OK


def test_certificates_that_are_checked_on_both_sides(
    launch: Callable[..., NameServer], tmp_path: Path
) -> None:
    """The name server demands one of its peers, and shows one that its peers' trust is in."""
    certificates = make_certificates(tmp_path)
    server = launch(**certificates.server_properties | {"tls.server.mode": "enforcing"})
    here = ("topics", "-n", address(server), "--tls")
    trust = ("--tls-trust", str(tmp_path / "ca.pem"))
    shown = ("--tls-cert", str(tmp_path / "client.pem"), "--tls-key", str(tmp_path / "client.key"))
    assert run(*here, *trust, *shown).code == ExitCode.OK
    for less in (shown, trust, ("--tls-insecure",)):
        assert run(*here, *less).code == ExitCode.UNREACHABLE, less


def test_requests_are_signed(mqns: Mqns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signed: list[AclCredentials] = []

    def sign(self: AclCredentials, address: str, request: Request) -> Request:
        signed.append(self)
        return request

    monkeypatch.setattr("mqns.remoting.acl.AclCredentials.__call__", sign)
    secret = tmp_path / "secret"
    secret.write_text("from-file\n")
    assert mqns("topics", "--access-key", "k", "--secret-key-file", str(secret)).code == ExitCode.OK
    assert mqns("topics", env={"MQNS_ACCESS_KEY": "k", "MQNS_SECRET_KEY": "from-env"}).code == ExitCode.OK
    assert [(s.access_key, s.secret_key) for s in signed] == [("k", "from-file"), ("k", "from-env")]


def authorizations(listener: socket.socket, seen: list[str]) -> None:
    """Answer each request with nothing that a name server says, and note what it shows."""
    with contextlib.suppress(OSError):
        while True:
            peer, _ = listener.accept()
            with peer:
                head = peer.recv(1 << 16).decode()
                seen += re.findall(r"(?im)^authorization: (.*?)\r$", head) or ["none"]
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


def test_requests_over_http_show_the_token(tmp_path: Path) -> None:
    token, seen = tmp_path / "token", list[str]()
    token.write_text("mqns_of-file\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        threading.Thread(target=authorizations, args=(listener, seen), daemon=True).start()
        url = ("--http", f"http://127.0.0.1:{port}")
        run("settings", *url)
        run("drains", *url, "--token-file", str(token))
        run("settings", *url, env={"MQNS_TOKEN": "mqns_of-env"})
        run("events", *url, env={"MQNS_TOKEN": "mqns_of-env", "MQNS_TOKEN_FILE": str(token)})
        assert seen == ["none", "Bearer mqns_of-file", "Bearer mqns_of-env", "Bearer mqns_of-file"]
        seen.clear()
        run("doctor", "-n", f"127.0.0.1:{free_port()}", *url, "--token-file", str(token))
        assert "Bearer mqns_of-file" in seen  # beside a frame that asks if it is a remoting port
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("token", ["two words", "m\u00e4", "a\x7fb"])
def test_what_is_no_token_is_not_sent(token: str) -> None:
    ended = run("settings", "--http", "http://127.0.0.1:1", env={"MQNS_TOKEN": token})
    assert ended.code == ExitCode.WRONG_USAGE
    assert ended.err == "mqns: the token: not one word of printable ASCII characters\n"


def test_the_port_may_be_left_out() -> None:
    """In the option and in the variable; what was tried is named."""
    for ended in (run("topics", "-n", "127.255.0.1"), run("topics", env={"NAMESRV_ADDR": "127.255.0.1"})):
        assert ended.code == ExitCode.UNREACHABLE
        assert ended.err.startswith("mqns: 127.255.0.1:9876: not connected")


def test_version_and_help() -> None:
    assert re.fullmatch(r"mqns \S+, Python \S+\n", run("--version").out)
    assert "Exit codes: 0 done" in " ".join(run("-h").out.split())
    assert "--namesrv-addr" in run("kv", "get", "-h").out


def test_the_first_lines_of_help_say_what_to_type() -> None:
    """Then come the commands, each with its first sentence, and the options last."""
    lines = run("-h").out.splitlines()
    assert "  mqns -n 10.0.0.1 brokers " in "\n".join(lines[:10])
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        *("Look:", "Change:", "Back up:", "As mqadmin has them:", "Options:", "Options of every command:")
    ]
    assert [line for line in lines[1:] if line.endswith("...")] == []
    for group in ("kv", "config", "permissions"):
        page = run(group, "-h").out
        assert page.index("Commands:") < page.index("Options:")
    page = run("routes", "-h").out
    assert page.index("Arguments:") < page.index("Options:") < page.index("Options of every command:")


def test_misspelt_variables_are_named(unreachable: str) -> None:
    ended = run("topics", "-n", unreachable, env={"MQNS_HTTPS": "x", "MQNS_LISTEN_PORT": "1"})
    first, _ = ended.err.splitlines()
    assert first == "mqns: MQNS_HTTPS is no variable of mqns and has no effect; did you mean MQNS_HTTP?"
    assert misspelt(["MQNS_NAMESRV"])[0].endswith("did you mean NAMESRV_ADDR?")


def test_variables_of_the_other_programs_are_none_of_ours() -> None:
    others = [*VARIABLES, *KNOWN, *(f"{PREFIX}{name.upper()}" for name in get_type_hints(Options))]
    assert misspelt(others) == []


def test_no_colour_and_no_folding_without_a_terminal(ns: Scene, mqns: Mqns) -> None:
    topic = "T" * 120
    ns.f1(topics=())
    mqns("kv", "set", "space", topic, "v" * 400)
    out = mqns("kv", "list", "space", env={"COLUMNS": "40"}).out
    assert "\x1b" not in out
    assert [topic, "v" * 400] in [line.split() for line in out.splitlines()]


def test_names_of_peers_do_not_move_the_cursor(mqns: Mqns) -> None:
    mqns("kv", "set", "space", "key", "\x1b[31mred[bold]")
    assert mqns("kv", "get", "space", "key").out == "\\x1b[31mred[bold]\n"
    assert plain("a\tb\nc\u202e") == "a\tb\\nc\\u202e"
    mqns("kv", "set", "space", "key", "one\ntwo")
    assert mqns("kv", "get", "space", "key").out == "one\ntwo\n"
    assert ["key", "one\\ntwo"] in mqns("kv", "list", "space").words


def test_as_a_process(servers: list[NameServer]) -> None:
    done = process("-m", "mqns.cli", "topics", NAMESRV_ADDR=address(servers[0]))
    assert (done.returncode, done.stderr) == (ExitCode.OK, b"")


def test_completion() -> None:
    """What a shell asks when the tabulator key is pressed after `mqns top`."""
    words = {"_MQNS_COMPLETE": "complete_bash", "COMP_WORDS": "mqns top", "COMP_CWORD": "1"}
    done = process("-m", "mqns.cli", **words)
    assert done.stdout.split() == [b"topics", b"topicRoute", b"topicList", b"topicClusterList"]


@pytest.mark.parametrize("package", sorted(EXTRA))
def test_without_the_extra(package: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; from mqns.cli.main import main; main()"
    done = process("-c", program)
    reported = f"mqns: {package} is missing; install mqns with its extra: mqns[cli]\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", reported)


def process(*arguments: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """An interpreter that ran to its end."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={"PATH": os.environ["PATH"]} | env,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        timeout=50,
    )


def test_letters_that_the_locale_does_not_have(mqns: Mqns, servers: list[NameServer]) -> None:
    mqns("kv", "set", "space", "key", "中文")
    env = {"NAMESRV_ADDR": address(servers[0]), "PYTHONIOENCODING": "ascii"}
    done = process("-m", "mqns.cli", "kv", "get", "space", "key", **env)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"\\u4e2d\\u6587\n", b"")


def test_ctrl_c_while_an_answer_is_waited_for(mqns: Mqns, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mqns.name_server.client.NameServerClient.call", interrupted)
    ended = mqns("topics")
    assert (ended.code, ended.out, ended.err) == (ExitCode.INTERRUPTED, "", "")


def test_progress_is_shown_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    output = Printer(OutputFormat.TABLE)
    with output.progress("routes", 2) as done:
        done()
    assert capsys.readouterr() == ("", "")
    shown = StringIO()
    output.errors = Console(file=shown, force_terminal=True, width=80)
    with output.progress("routes", 2) as done:
        done()
        done()
    assert "routes" in shown.getvalue()
    assert "2/2" in shown.getvalue()
