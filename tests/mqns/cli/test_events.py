"""`mqns events` and `mqns audit`, against servers of ours with their HTTP side."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from mqns.cli import events
from mqns.cli.exit_codes import ExitCode
from mqns.cli.http_api import HttpApi, HttpError
from mqns.event_words import KINDS
from registry.events.entry import EventKind
from testbed.broker import B
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.ports import free_port
from testbed.scene import Scene
from tests.mqns.cli.conftest import Ended, http_side, run
from tests.mqns.cli.test_http_api import answering, whole
from tests.mqns.cli.test_watch import hears_ctrl_c, interrupted

WHY = ("--owner", "alice", "--reason", "kernel upgrade")


class Side:
    """A name server, and commands for its HTTP side."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.url = http_side(scene.server)
        self.began = httpx.get(f"{self.url}/readyz").json()["nowMillis"]

    def __call__(self, *arguments: str) -> Ended:
        return run(*arguments, env={"MQNS_HTTP": self.url})

    def since(self, *arguments: str) -> Ended:
        """Run a command for what has happened since the test began."""
        return self(*arguments, "--since", str(self.began))

    def kinds(self, *arguments: str) -> list[str]:
        return [entry["kind"] for entry in self.since(*arguments, "-o", "json").document]


@pytest.fixture
def side(ns: Scene) -> Side:
    """Return a name server on which brokers registered and an operator drained one."""
    made = Side(ns)
    ns.f3()
    assert made("drain", "broker-a", *WHY).code == made("undrain", "broker-a").code == ExitCode.OK
    return made


def test_what_changed_is_a_line_each_the_newest_last(side: Side) -> None:
    ended = side.since("events", "--broker", "broker-a")
    assert (ended.code, ended.err) == (ExitCode.OK, "")
    assert [line.split(maxsplit=1)[1].rpartition(" by ")[0] for line in ended.out.splitlines()] == [
        "broker_registered/first broker-a 0=127.10.0.1:10911 of c1 entered",
        "topics_changed/register TA on broker-a: added 8/8 RW-; TB on broker-a: added 4/4 RW-",
        'drain_changed/drain broker-a: not drained -> drained for alice, "kernel upgrade"',
        'drain_changed/undrain broker-a: drained for alice, "kernel upgrade" -> not drained',
    ]
    assert ended.out.splitlines()[-1].rpartition(" by ")[2].startswith("http:127.0.0.1:")


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        (("--topic", "TC"), ["topics_changed"]),
        (("--topic", "TA", "--broker", "broker-b"), ["topics_changed"]),
        (
            ("--kind", "drain_changed", "--kind", "broker_registered", "--limit", "3"),
            ["broker_registered", *["drain_changed"] * 2],
        ),
        (("--cluster", "c1", "--kind", "broker_registered"), ["broker_registered"] * 2),
        (("--actor", "http:127.0.0.1"), ["drain_changed"] * 2),
        (("--actor", "wire", "--kind", "drain_changed"), []),
        (("--until", "1000"), []),
    ],
)
def test_filters(side: Side, arguments: tuple[str, ...], kinds: list[str]) -> None:
    side.began = 0 if "--until" in arguments else side.began
    assert side.kinds("events", *arguments) == kinds


def test_who_did_it(side: Side) -> None:
    assert side.kinds("audit") == ["drain_changed"] * 2
    (newest,) = side("audit", "--limit", "1", "-o", "json").document
    assert (newest["kind"], newest["cause"]) == ("drain_changed", "undrain")
    drain = newest["data"]["before"]
    assert (drain["owner"], drain["reason"]) == ("alice", "kernel upgrade")
    assert "fields" not in newest


def test_no_entry_is_no_line(side: Side) -> None:
    ended = side("events", "--kind", "settings_changed", "--until", "1000")
    assert (ended.code, ended.out, ended.err) == (ExitCode.OK, "", "")
    assert side("events", "--kind", "none", "-o", "json").document == []


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("drain", "did you mean drain_changed?"),
        ("topic_changed", "did you mean topics_changed?"),
        ("broker", "did you mean broker_registered or broker_updated or broker_removed?"),
        ("x", f"kinds are {', '.join(KINDS)}"),
    ],
)
def test_a_kind_that_is_none_is_named(side: Side, kind: str, said: str) -> None:
    """It is asked for all the same: a server of a later release may have it."""
    ended = side.since("audit", "--kind", kind, "--kind", "drain_changed")
    assert (ended.code, len(ended.out.splitlines())) == (ExitCode.OK, 2)
    assert ended.err == f"mqns: --kind: '{kind}' is no kind that this release knows; {said}\n"


def test_all_kinds_are_known() -> None:
    assert set(KINDS) == set(EventKind)


def test_older_entries_than_the_limit_are_mentioned(side: Side) -> None:
    ended = side("events", "--limit", "1")
    assert len(ended.out.splitlines()) == 1
    assert ended.err == "mqns: the last 1; there may be others before them (--limit)\n"


def test_a_duration_goes_by_the_clock_of_the_server(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqns.cli.events.time.time_ns", lambda: 0)
    assert "drain_changed" in [
        entry["kind"] for entry in side("events", "--since", "10m", "-o", "json").document
    ]
    assert side("events", "--since", "0s", "--kind", "broker_registered").out == ""


def test_a_duration_where_the_server_is_not_ready(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    def not_ready(_: HttpApi) -> int:
        raise HttpError("the store was not reached")

    monkeypatch.setattr(HttpApi, "now_millis", not_ready)
    assert "drain_changed" in side("events", "--since", "10m").out
    assert side("events", "--since", "0s", "--kind", "broker_registered").out == ""


def test_what_comes_before_the_first_look_is_there_once(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = events._newest

    def then_one_more(api: HttpApi) -> str | None:
        entry_id = newest(api)
        assert side("drain", "broker-b", *WHY).code == side("undrain", "broker-b").code == ExitCode.OK
        return entry_id

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(events, "_newest", then_one_more)
    monkeypatch.setattr(events, "wait", interrupt)
    ended = side.since("events", "-f", "--kind", "drain_changed")
    assert (ended.code, ended.err) == (ExitCode.INTERRUPTED, "")
    assert [line.split()[2] for line in ended.out.splitlines()] == ["broker-a:"] * 2 + ["broker-b:"] * 2


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("--since", "5x"), ExitCode.WRONG_USAGE, "mqns: --since: '5x' is neither a duration"),
        (("--until", "now"), ExitCode.WRONG_USAGE, "mqns: --until: 'now' is neither a duration"),
        (("--since", "2030-01-01", "--until", "2029-01-01"), ExitCode.REFUSED, "mqns: until: before since"),
        (("--topic", ""), ExitCode.REFUSED, "mqns: topic: "),
        (("-f", "--until", "1h"), ExitCode.WRONG_USAGE, "mqns: --until, or --follow: not both"),
        (("--limit", "0"), ExitCode.WRONG_USAGE, ""),
    ],
)
def test_bad_input(side: Side, arguments: tuple[str, ...], code: int, complaint: str) -> None:
    ended = side("events", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith(complaint)


def test_a_server_that_is_away(unreachable: str) -> None:
    for arguments in (("events",), ("audit", "-f"), ("events", "--since", "1h")):
        ended = run(*arguments, "--http", f"http://{unreachable}")
        assert (ended.code, ended.out) == (ExitCode.UNREACHABLE, "")
        assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    "page",
    [
        {"events": [], "next": "x", "more": True},
        {"events": [{"id": "1-0"}], "next": None, "more": False},
        {"events": {}, "next": None, "more": False},
    ],
)
def test_what_is_no_answer_of_a_name_server(page: object) -> None:
    body = json.dumps(page).encode()
    with answering(lambda: whole(body), 0) as url:
        ended = run("events", "--http", url)
    assert (ended.code, ended.out) == (ExitCode.REFUSED, "")
    assert ended.err == f"mqns: {url}: status 200, and no answer of a redis-namesrv\n"


class Following:
    """`mqns … -f -o json` as a process."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.process = process
        self._out, self._err = out, err

    @property
    def entries(self) -> list[Any]:
        return [json.loads(line) for line in self._out.read_text().splitlines()]

    @property
    def complaints(self) -> list[str]:
        return self._err.read_text().splitlines()


@contextmanager
def following(url: str, folder: Path, *arguments: str) -> Iterator[Following]:
    """Yield a running command."""
    out, err = folder / "out", folder / "err"
    with out.open("wb") as output, err.open("wb") as complaints:
        process = subprocess.Popen(
            [sys.executable, "-m", "mqns.cli", *arguments, "-f", "-o", "json", "--http", url],
            stdout=output,
            stderr=complaints,
            stdin=subprocess.DEVNULL,
            cwd=Path(__file__).parents[3],
            env={"PATH": os.environ["PATH"]},
            preexec_fn=hears_ctrl_c,
        )
    try:
        yield Following(process, out, err)
    finally:
        process.kill()
        process.wait()


def test_entries_that_come_until_ctrl_c(side: Side, tmp_path: Path) -> None:
    since = ("--since", str(side.began), "--broker", "broker-b")
    with following(side.url, tmp_path, "events", *since) as command:
        eventually(lambda: len(command.entries) == 2)
        assert B.unregister(side.scene.k3).code == 0
        removed = eventually(lambda: command.entries[2:])
        assert [entry["kind"] for entry in removed] == ["broker_removed"]
        assert interrupted(command.process)[0] == ExitCode.INTERRUPTED
        assert command.complaints == []


def test_following_survives_a_restart_of_the_server(
    launch: Callable[..., NameServer], tmp_path: Path
) -> None:
    server = launch(httpPort=str(free_port()))
    url = f"http://127.0.0.1:{server.options['httpPort']}"

    def put(value: str) -> None:
        assert httpx.put(f"{url}/v1/kv/n/k", json={"value": value}).is_success

    put("1")
    with following(url, tmp_path, "audit", "--kind", "kv_changed") as command:
        eventually(lambda: command.entries)
        server.stop()
        eventually(lambda: command.complaints)
        server.start()
        put("2")
        eventually(lambda: len(command.entries) == 2)
        assert [entry["data"]["after"] for entry in command.entries] == ["1", "2"]
        (complaint,) = command.complaints
        assert complaint.startswith(f"mqns: {url}: ")
        assert interrupted(command.process)[0] == ExitCode.INTERRUPTED
