"""`mqns drift` with two name servers of ours that know nothing of each other."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from access.classes import REMOTING, AccessClass
from mqns.cli.drift import command
from mqns.cli.exit_codes import ExitCode
from registry.drift import COMPARISONS_MOST, KINDS
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.frame import FrameReader
from testbed.broker import TA, TB, TC, A, B, Broker, Topic
from testbed.scene import Scene
from tests.mqns.cli.conftest import Ended, address, http_side, run
from tests.mqns.cli.test_watch import hears_ctrl_c
from tests.mqns.remoting.servers import served

ROOT: Final = Path(__file__).parents[3]
C: Final = Broker(name="broker-c", addr="127.10.0.5:10911")
D: Final = Broker(name="broker-d", addr="127.10.0.6:10911")
E: Final = Broker(name="broker-e", addr="127.10.0.7:10911", topics=(TC, TB))


@pytest.fixture
def url(scenes: list[Scene]) -> Iterator[str]:
    """The HTTP side to which results are reported; no comparison is left there."""
    found = http_side(scenes[0].server)
    yield found
    for one in httpx.get(f"{found}/v1/drift").json()["comparisons"]:
        httpx.delete(f"{found}/v1/drift/{one['name']}").raise_for_status()


def drift(scenes: list[Scene], *arguments: str) -> Ended:
    """One look is enough, unless the arguments say otherwise."""
    grace = () if "--grace" in arguments else ("--grace", "0")
    return run("drift", *(address(scene.server) for scene in scenes), *grace, "-o", "json", *arguments)


def examples(ended: Ended) -> list[tuple[str, str]]:
    return [(one["kind"], one["subject"]) for one in ended.document["examples"]]


def plant_each_kind(first: Scene, second: Scene) -> None:
    A.register(first.k1)
    A.but(topics=(Topic("TA", queues=4), Topic("TD"))).register(second.k1)
    B.register(first.k1)
    for scene, addr, cluster in ((first, C.addr, "c1"), (second, "127.10.0.9:10911", "c2")):
        C.but(addr=addr, topics=(TA, TB)).register(scene.k1)
        D.but(cluster=cluster).register(scene.k1)
    E.register(first.k1)
    E.but(topics=(TC, Topic("TE"))).register(second.k1)
    first.put_kv("ORDER_TOPIC_CONFIG", "TA", "broker-a:8")


def test_two_that_agree(scenes: list[Scene]) -> None:
    for scene in scenes:
        A.register(scene.k1)
    ended = drift(scenes)
    assert ended.code == ExitCode.OK
    assert ended.document == {
        "nameServers": [address(scene.server) for scene in scenes],
        "outcome": "same",
        "counts": {},
        "unreachable": [],
        "examples": [],
    }


def test_each_kind_of_difference_is_found(scenes: list[Scene]) -> None:
    """They are those that the name server takes reports of."""
    plant_each_kind(*scenes)
    ended = drift(scenes)
    assert (ended.code, ended.document["outcome"]) == (ExitCode.FINDINGS, "drift")
    assert set(ended.document["counts"]) == set(KINDS)
    assert {
        ("broker-missing", f"broker-b {B.addr}"),
        ("broker-conflict", "broker-c with id 0"),
        ("broker-cluster-differs", "broker-d"),
        ("topic-missing", "TE"),
        ("queues-missing", "TB of broker-a"),
        ("queues-differ", "TA of broker-a"),
        ("kv-differs", "ORDER_TOPIC_CONFIG TA"),
    } <= set(examples(ended))
    shown = run("drift", *ended.document["nameServers"], "--grace", "0")
    assert "1 kv-differs" in shown.out
    assert "'broker-a:8' at" in shown.out


def test_a_namespace_of_kv_is_compared_if_it_is_named(scenes: list[Scene]) -> None:
    scenes[1].put_kv("mine", "k", "v")
    assert drift(scenes).code == ExitCode.OK
    assert examples(drift(scenes, "--kv", "mine")) == [("kv-differs", "mine k")]


def test_what_comes_within_the_grace_is_no_drift(
    scenes: list[Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = scenes
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        A.register(second.k1)

    monkeypatch.setattr(command, "wait", wait)
    A.register(first.k1)
    B.register(first.k1)
    assert examples(drift(scenes, "--grace", "3")) == [("broker-missing", f"broker-b {B.addr}")]
    assert waited == [3.0]


def test_one_that_does_not_answer_is_no_drift(scenes: list[Scene], unreachable: str, silent: str) -> None:
    A.register(scenes[0].k1)
    for where, timeout, code in (
        (unreachable, "5", ExitCode.UNREACHABLE),
        (silent, "0.2", ExitCode.TIMED_OUT),
    ):
        ended = run("drift", address(scenes[0].server), where, "--timeout", timeout, "-o", "json")
        assert (ended.code, ended.document["outcome"], ended.document["counts"]) == (code, "unreachable", {})
        assert [one["nameServer"] for one in ended.document["unreachable"]] == [where]


def test_one_that_refuses_is_no_drift_and_is_asked_for_what_clients_may_read_alone(ns: Scene) -> None:
    """What it refuses would be taken for absent; options may be for operators only, and each refusal is an event."""
    asked = set[int]()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        while data := await reader.read(1 << 16):
            frames.feed(data)
            while (request := frames.next_command()) is not None:
                asked.add(request.code)
                writer.write(encode(request.reply(ResponseCode.NO_PERMISSION, remark="access denied")))
        writer.close()

    A.register(ns.k1)
    with served(refuse) as where:
        ended = run("drift", address(ns.server), where, "-o", "json")
    assert (ended.code, ended.document["counts"]) == (ExitCode.UNREACHABLE, {})
    assert ended.document["unreachable"] == [
        {"nameServer": where, "reason": "brokers and clusters: refused (access denied)"}
    ]
    assert asked <= {int(code) for code, of in REMOTING.items() if of is AccessClass.READ}


def test_a_result_is_reported(scenes: list[Scene], url: str, unreachable: str) -> None:
    plant_each_kind(*scenes)
    ended = drift(scenes, "--http", url, "--name", "d")
    assert ended.code == ExitCode.FINDINGS
    stored = httpx.get(f"{url}/v1/drift/d").json()
    assert {name: stored[name] for name in ended.document} == ended.document
    assert stored["validForSeconds"] == 86_400
    run("drift", address(scenes[0].server), unreachable, "--http", url, "--name", "d", "--valid-for", "7")
    stored = httpx.get(f"{url}/v1/drift/d").json()
    assert (stored["outcome"], stored["validForSeconds"]) == ("unreachable", 7)
    assert drift(scenes, "--http", url).code == ExitCode.FINDINGS
    names = [one["name"] for one in httpx.get(f"{url}/v1/drift").json()["comparisons"]]
    assert names == sorted(["d", "_".join(ended.document["nameServers"]).replace(":", "-")])


def test_a_report_that_is_refused_ends_it(scenes: list[Scene], url: str, unreachable: str) -> None:
    body: dict[str, Any] = {"nameServers": ["h1:1", "h2:1"], "validForSeconds": 60}
    for number in range(COMPARISONS_MOST):
        httpx.put(f"{url}/v1/drift/c{number}", json=body).raise_for_status()
    full = drift(scenes, "--http", url)
    assert full.code == ExitCode.REFUSED
    assert "there are 20 comparisons" in full.err
    assert drift(scenes, "--http", f"http://{unreachable}").code == ExitCode.UNREACHABLE


def repeated(
    scenes: list[Scene], monkeypatch: pytest.MonkeyPatch, between: list[Callable[[], object]], *arguments: str
) -> Ended:
    """Look once more than there are things to do between looks."""
    left = iter(between)

    def wait(seconds: float) -> None:
        act = next(left, None)
        if act is None:
            raise KeyboardInterrupt
        act()

    monkeypatch.setattr(command, "wait", wait)
    return drift(scenes, "--every", "60", *arguments)


def nothing() -> None:
    """Let the next look see the same."""


def outcomes(ended: Ended) -> list[str]:
    return [run.document["outcome"] for run in (Ended(0, line, "") for line in ended.out.splitlines())]


def test_it_prints_what_changes_and_reports_what_it_finds(
    scenes: list[Scene], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = scenes
    reported: list[str] = []

    def note() -> None:
        reported.append(httpx.get(f"{url}/v1/drift/d").json()["outcome"])

    def register() -> None:
        note()
        A.register(first.k1)

    def both() -> None:
        note()
        A.register(second.k1)

    ended = repeated(
        scenes, monkeypatch, [register, note, note, both, note], "--http", url, "--name", "d", "--grace", "60"
    )
    assert ended.code == ExitCode.OK
    assert outcomes(ended) == ["same", "drift", "same"]
    assert reported == ["same", "same", "drift", "drift", "same"]
    assert httpx.get(f"{url}/v1/drift/d").json()["validForSeconds"] == 300
    events = httpx.get(f"{url}/v1/events", params={"kind": "drift_changed", "limit": 1000}).json()["events"]
    assert [one["data"]["after"]["outcome"] for one in events[-3:]] == ["same", "drift", "same"]


def test_nothing_is_said_before_a_difference_could_have_lasted(
    scenes: list[Scene], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comparison that is started again would else tell of agreement first."""
    A.register(scenes[0].k1)

    def none_yet() -> None:
        assert httpx.get(f"{url}/v1/drift").json()["comparisons"] == []

    ended = repeated(scenes, monkeypatch, [none_yet, none_yet, nothing], "--http", url, "--grace", "120")
    assert outcomes(ended) == ["drift"]


def test_a_report_that_fails_is_said_once_and_the_next_is_made(
    scenes: list[Scene], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body: dict[str, Any] = {"nameServers": ["h1:1", "h2:1"], "validForSeconds": 60}
    for number in range(COMPARISONS_MOST):
        httpx.put(f"{url}/v1/drift/c{number}", json=body).raise_for_status()

    def room() -> None:
        httpx.delete(f"{url}/v1/drift/c0").raise_for_status()

    ended = repeated(scenes, monkeypatch, [nothing, room, nothing], "--http", url, "--name", "d")
    assert ended.err.splitlines() == [
        "mqns: not reported: comparison 'd': there are 20 comparisons, the most there may be; delete one of them"
        "; each look tries again",
        "mqns: reported again",
    ]
    assert httpx.get(f"{url}/v1/drift/d").json()["outcome"] == "same"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(scenes: list[Scene], number: signal.Signals) -> None:
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "mqns.cli",
            "drift",
            *(address(scene.server) for scene in scenes),
            "--every",
            "60",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        preexec_fn=hears_ctrl_c,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().endswith(b" agree\n")
            process.send_signal(number)
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (ExitCode.OK, b"", b"")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("h:1", "h:1"), "two name servers"),
        (("h:1;h:2", "h:3"), "two name servers"),
        (("h:1", "h:x"), "h:x"),
        (("h:1", "h:2", "--http", "u", "--name", "a b"), "--name: 'a b'"),
        (("h" * 60 + ":1", "h:2", "--http", "u"), "--name"),
        (("h:1", "h:2", "--every", "0"), "--every"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], said: str) -> None:
    ended = run("drift", *arguments)
    assert ended.code == ExitCode.WRONG_USAGE
    assert said in ended.err
