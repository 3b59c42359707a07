"""`mqns drain` and `undrain`, against a server of ours with its HTTP side; what all its workers then answer."""

import os
import pwd
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from mqns.cli.exit_codes import ExitCode
from testbed.broker import B
from testbed.eventually import PATIENCE_S, eventually
from testbed.scene import Scene
from tests.mqns.cli.conftest import Ended, http_side, run

WHY = ("--owner", "alice", "--reason", "kernel upgrade")


class Side:
    """A name server with two brokers, and commands for its HTTP side."""

    def __init__(self, scene: Scene) -> None:
        self.url = http_side(scene.server)
        self.scene = scene
        scene.f3()

    def __call__(self, *arguments: str, **env: str | None) -> Ended:
        return run(*arguments, "--http", self.url, env={"USER": None, **env})

    def comes_to(self, perms: dict[str, int], within_s: float = PATIENCE_S) -> None:
        """Workers hear of a drain from the stream."""
        eventually(lambda: self.scene.perms("TA") == perms, within_s)


@pytest.fixture
def side(ns: Scene) -> Iterator[Side]:
    made = Side(ns)
    yield made
    assert made("undrain", "broker-a", "broker-b").code == ExitCode.OK


def test_producers_are_kept_off_until_the_broker_is_undrained(side: Side) -> None:
    side.comes_to({"broker-a": 6, "broker-b": 6})
    assert side("drain", "broker-a", *WHY, "-o", "json").document == [
        {"brokerName": "broker-a", "changed": True, "topicCount": 2}
    ]
    side.comes_to({"broker-a": 4, "broker-b": 6})
    assert side("drain", "broker-a", "broker-b", *WHY).words == [
        ["BROKER", "CHANGED", "TOPICS"],
        ["broker-a", "no", "2"],
        ["broker-b", "yes", "2"],
    ]
    side.comes_to({"broker-a": 4, "broker-b": 4})
    assert side("undrain", "broker-b", "broker-a").words[1:] == [
        ["broker-b", "yes", "2"],
        ["broker-a", "yes", "2"],
    ]
    side.comes_to({"broker-a": 6, "broker-b": 6})


def test_for_how_long_goes_by_the_clock_of_the_server(side: Side) -> None:
    now_ms = httpx.get(f"{side.url}/readyz").json()["nowMillis"]
    assert side("drain", "broker-a", *WHY, "--for", "600").code == ExitCode.OK
    drain = httpx.get(f"{side.url}/v1/brokers/broker-a/drain").json()
    assert 600_000 <= drain.pop("untilMillis") - now_ms < 660_000
    assert drain == {"owner": "alice", "reason": "kernel upgrade"}


def test_a_drain_ends_by_itself_in_all_workers(side: Side) -> None:
    assert side("drain", "broker-a", *WHY).code == ExitCode.OK
    side.comes_to({"broker-a": 4, "broker-b": 6})
    assert side("drain", "broker-a", *WHY, "--for", "1").code == ExitCode.OK
    side.comes_to({"broker-a": 6, "broker-b": 6})
    assert httpx.get(f"{side.url}/v1/brokers/broker-a/drain").status_code == httpx.codes.NOT_FOUND


def test_whose_it_is_may_come_from_the_environment(side: Side) -> None:
    assert side("drain", "broker-a", "--reason", "r", USER="bob").code == ExitCode.OK
    assert httpx.get(f"{side.url}/v1/brokers/broker-a/drain").json()["owner"] == "bob"


def test_whose_it_is_without_an_environment(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user may have neither variable nor name."""
    unset: dict[str, Any] = dict.fromkeys(("LOGNAME", "LNAME", "USERNAME"))
    drain = ("drain", "broker-a", "--reason", "r")
    assert side(*drain, **unset).code == ExitCode.OK
    name = pwd.getpwuid(os.getuid()).pw_name
    assert httpx.get(f"{side.url}/v1/brokers/broker-a/drain").json()["owner"] == name

    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert side(*drain, **unset).code == ExitCode.OK
    assert httpx.get(f"{side.url}/v1/brokers/broker-a/drain").json()["owner"] == f"uid {os.getuid()}"


def test_what_the_server_refuses(side: Side) -> None:
    ended = side("drain", "No?Such", *WHY)
    assert (ended.code, ended.out, ended.err) == (
        ExitCode.REFUSED,
        "",
        "mqns: no broker 'No?Such'\n",
    )


@pytest.mark.parametrize("command", ["drain", "undrain"])
def test_a_typo_among_others_is_told_and_the_others_are_done(side: Side, command: str) -> None:
    if command == "undrain":
        assert side("drain", "broker-a", "broker-b", *WHY).code == ExitCode.OK
    ended = side(command, "broker-a", "typo", "broker-b", *(WHY if command == "drain" else ()), "-o", "json")
    assert (ended.code, ended.err) == (ExitCode.REFUSED, "mqns: no broker 'typo' (not done: typo)\n")
    assert ended.document == [
        {"brokerName": broker, "changed": True, "topicCount": 2} for broker in ("broker-a", "broker-b")
    ]
    side.comes_to(dict.fromkeys(("broker-a", "broker-b"), 4 if command == "drain" else 6))


def test_a_server_that_goes_away_is_told_with_what_is_left(unreachable: str) -> None:
    ended = run("undrain", "broker-a", "broker-b", "--http", f"http://{unreachable}")
    assert (ended.code, ended.out) == (ExitCode.UNREACHABLE, "")
    assert ended.err.endswith(" (not done: broker-a, broker-b)\n")


@pytest.mark.parametrize("name", ["a/b", "", "..", "=", "%RETRY%g", "b.c"])
def test_a_broker_may_have_any_name(side: Side, name: str) -> None:
    broker = B.but(name=name, addr="127.67.1.1:10911")
    assert broker.register(side.scene.k3).code == 0
    for command, why in (("drain", WHY), ("undrain", ())):
        ended = side(command, name, *why)
        assert (ended.code, ended.err) == (ExitCode.OK, "")
    broker.unregister(side.scene.k3)


def test_an_unreachable_server(unreachable: str, silent: str) -> None:
    ended = run("undrain", "broker-a", "--http", f"http://{unreachable}")
    assert (ended.code, ended.err.startswith(f"mqns: http://{unreachable}: ")) == (ExitCode.UNREACHABLE, True)
    ended = run("undrain", "broker-a", "--http", f"http://{silent}", "--timeout", "0.05")
    assert (ended.code, ended.err) == (
        ExitCode.TIMED_OUT,
        f"mqns: http://{silent}: no answer within 0.05 s\n",
    )


def test_another_http_server(side: Side) -> None:
    ended = run("undrain", "broker-a", "--http", f"{side.url}/nowhere")
    assert (ended.code, ended.out) == (ExitCode.REFUSED, "")


def test_where_to_must_be_said() -> None:
    assert run("undrain", "broker-a").code == ExitCode.WRONG_USAGE
