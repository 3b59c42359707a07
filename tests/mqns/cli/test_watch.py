"""`mqns watch`."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mqns.cli.exit_codes import ExitCode, NotFound
from mqns.cli.watch import changes
from testbed.broker import A, B, Topic
from testbed.eventually import eventually
from testbed.scene import Scene
from testbed.scrape import value
from tests.mqns.cli.conftest import Mqns, address, http_side, run
from tests.mqns.cli.test_http_api import answering

END_S = 20.0


@pytest.fixture
def meanwhile(ns: Scene, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """What happens between two looks of `watch`, one after the other, each until all workers know of it."""

    def happens(*steps: Callable[[], object]) -> None:
        coming = iter(steps)

        async def wait(_: float) -> None:
            next(coming)()
            ns.route_answer("TA")
            ns.cluster_info()

        monkeypatch.setattr("mqns.cli.watch.wait", wait)

    return happens


def test_changes_of_a_topic(ns: Scene, mqns: Mqns, meanwhile: Callable[..., None]) -> None:
    meanwhile(ns.f1, lambda: B.register(ns.k3), lambda: B.unregister(ns.k3))
    ended = mqns("watch", "TA", "-c", "4", "-o", "json")
    assert (ended.code, ended.err) == (ExitCode.OK, "")
    reported = [json.loads(line) for line in ended.out.splitlines()]
    row = {"topic": "TA", "readQueueNums": 8, "writeQueueNums": 8, "perm": 6, "topicSysFlag": 0}
    a = row | {"brokerName": "broker-a", "brokerAddrs": {"0": "127.10.0.1:10911"}}
    b = row | {"brokerName": "broker-b", "brokerAddrs": {"0": "127.10.0.3:10911"}}
    assert [(change["change"], change["before"], change["after"]) for change in reported] == [
        ("added", None, a),
        ("added", None, b),
        ("removed", b, None),
    ]


def test_changes_as_lines(ns: Scene, mqns: Mqns, meanwhile: Callable[..., None]) -> None:
    meanwhile(ns.f1, lambda: A.but(counter=2, topics=(Topic("TA", perm=4), Topic("X"))).register(ns.k1))
    ended = mqns("watch", "TA", "-c", "3")
    assert [line.split(maxsplit=1)[1] for line in ended.out.splitlines()] == [
        "added TA broker-a 0=127.10.0.1:10911 8 8 RW-",
        "changed TA broker-a 0=127.10.0.1:10911 8 8 R-- (was TA broker-a 0=127.10.0.1:10911 8 8 RW-)",
    ]


@pytest.mark.parametrize("arguments", [(), ("--clusters",)])
def test_changes_of_clusters(
    ns: Scene, mqns: Mqns, meanwhile: Callable[..., None], arguments: tuple[str, ...]
) -> None:
    ns.f1()
    meanwhile(ns.f2, lambda: A.unregister(ns.k1))
    ended = mqns("watch", *arguments, "-c", "3")
    assert [line.split(maxsplit=1)[1] for line in ended.out.splitlines()] == [
        "added c1 broker-a 1 127.10.0.2:10911 slave",
        "removed c1 broker-a 0 127.10.0.1:10911 master",
    ]


def test_a_failure_is_printed_once_and_its_end(
    ns: Scene, mqns: Mqns, meanwhile: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0

    async def look(_: object) -> dict[Any, Any]:
        nonlocal looked
        looked += 1
        if looked in (2, 3):
            raise NotFound("away")
        return {}

    monkeypatch.setattr("mqns.cli.watch._brokers", look)
    meanwhile(*[lambda: None] * 4)
    ended = mqns("watch", "-c", "5")
    assert (ended.code, ended.out) == (ExitCode.OK, "")
    assert ended.err == "mqns: away\nmqns: answered again\n"


def test_topics_or_clusters() -> None:
    assert run("watch", "TA", "--clusters").code == ExitCode.WRONG_USAGE


def test_nothing_changed() -> None:
    assert changes({("a",): {"x": 1}}, {("a",): {"x": 1}}, "now") == []


def start(server: str, *arguments: str, output: int) -> subprocess.Popen[bytes]:
    """`mqns watch` as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "mqns.cli", "watch", "-n", server, "-i", "0.02", *arguments],
        stdout=output,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
        env={"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
        preexec_fn=hears_ctrl_c,
    )


def hears_ctrl_c() -> None:
    """A process that was started in the background ignores it, and so would this one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupted(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Its exit code and what it complained of, after Ctrl-C."""
    process.send_signal(signal.SIGINT)
    try:
        _, complaint = process.communicate(timeout=END_S)
    finally:
        process.kill()
    return process.returncode, complaint


def test_a_picture_on_a_terminal_until_ctrl_c(ns: Scene) -> None:
    ns.f1()
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    process = start(address(ns.server), "TA", output=theirs)
    seen = bytearray()

    def shown(text: bytes) -> bool:
        with suppress(BlockingIOError):
            seen.extend(os.read(ours, 1 << 16))
        return text in seen

    try:
        eventually(lambda: shown(b"127.10.0.1:10911"), END_S)
        B.register(ns.k3)
        eventually(lambda: shown(b"added TA broker-b"), END_S)
        assert interrupted(process) == (0, b"")
        assert b"\x1b[?25h" in seen or shown(b"\x1b[?25h"), "the cursor is back"
    finally:
        process.kill()
        os.close(ours)
        os.close(theirs)


def test_lines_into_a_pipe_until_ctrl_c(ns: Scene) -> None:
    """Each line comes when its change is seen."""
    process = start(address(ns.server), "-o", "json", output=subprocess.PIPE)
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    present = False

    def reported() -> bytes | None:
        nonlocal present
        present = not present
        (A.register if present else A.unregister)(ns.k1)
        return process.stdout.readline() if process.stdout else None

    try:
        change = json.loads(eventually(reported, END_S) or b"")
        assert (change["before"] or change["after"])["brokerName"] == "broker-a"
        code, complaint = interrupted(process)
        assert (code, complaint) == (0, b"")
    finally:
        process.kill()


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def test_where_changes_are_sent_it_looks_when_there_is_one(ns: Scene, tmp_path: Path) -> None:
    ns.f1()
    out = tmp_path / "out"
    with out.open("wb") as output:
        more = ("-i", "600", "-o", "json", "--http", http_side(ns.server))
        process = start(address(ns.server), "TA", *more, output=output.fileno())
    try:
        eventually(lambda: _watchers(ns) >= 1)
        B.register(ns.k3)
        eventually(lambda: '"added"' in out.read_text(), END_S)
        B.unregister(ns.k3)
        eventually(lambda: '"removed"' in out.read_text(), END_S)
        assert interrupted(process)[0] == ExitCode.OK
    finally:
        process.kill()
        process.wait()


def _watchers(ns: Scene) -> float:
    return value(int(http_side(ns.server).rpartition(":")[2]), "watchers", transport="sse")


def test_where_no_changes_are_sent_it_looks_again_and_again(
    ns: Scene, mqns: Mqns, meanwhile: Callable[..., None], unreachable: str
) -> None:
    meanwhile(ns.f1)
    ended = mqns("watch", "TA", "-c", "2", "--http", f"http://{unreachable}")
    assert ended.code == ExitCode.OK
    assert "added TA broker-a" in ended.out


def test_an_http_side_without_changes_is_reported_once(ns: Scene, mqns: Mqns) -> None:
    with answering(lambda: iter([NOT_FOUND]), 0) as url:
        ended = mqns("watch", "TA", "-c", "3", "-i", "0.3", "--http", url)
    assert ended.code == ExitCode.OK
    assert ended.err.count("asked again and again instead") == 1
