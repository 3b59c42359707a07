"""`mqns drain`, `undrain` and `drains`, and commands that show drains, against a server of ours with its HTTP side;
what all its workers then answer."""

import os
import pwd
import re
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from mqns.cli.drain_list import time_text
from mqns.cli.exit_codes import ExitCode
from testbed.broker import B
from testbed.eventually import PATIENCE_S, eventually
from testbed.scene import Scene
from tests.mqns.cli.conftest import Ended, Mqns, http_side, run
from tests.mqns.cli.test_http_api import answering, whole

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
    assert (drain["owner"], drain["reason"]) == ("alice", "kernel upgrade")


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


def test_the_drain_of_another_owner_is_named_where_it_is_replaced(side: Side) -> None:
    ask = ("drain", "broker-a", "broker-b", "--owner", "bob", "--reason", "disk")
    assert side("drain", "broker-a", *WHY).err == ""
    assert side(*ask).err == "mqns: broker-a was drained by alice (kernel upgrade); that drain is replaced\n"
    assert side(*ask, "--for", "3600").err == ""
    err = side("drain", "broker-b", *WHY).err
    assert re.fullmatch(
        r"mqns: broker-b was drained by bob until 20\S+Z \(disk\); that drain is replaced\n", err
    )


def test_what_the_server_refuses(side: Side) -> None:
    ended = side("drain", "No?Such", *WHY)
    assert (ended.code, ended.out, ended.err) == (
        ExitCode.REFUSED,
        "",
        "mqns: no broker 'No?Such'\n",
    )


@pytest.mark.parametrize("command", ["drain", "undrain"])
def test_nothing_is_done_if_one_of_several_is_unknown(side: Side, command: str) -> None:
    why = WHY if command == "drain" else ()
    if command == "undrain":
        assert side("drain", "broker-a", "broker-b", *WHY).code == ExitCode.OK
    before = side("drains", "-o", "json").document
    ended = side(command, "broker-a", "typo", "broker-b", "typo", "t/2", *why, "-o", "json")
    assert (ended.code, ended.out) == (ExitCode.REFUSED, "")
    assert ended.err == "mqns: no broker 'typo', 't/2'; nothing was done for the others\n"
    assert side("drains", "-o", "json").document == before


def test_a_drained_broker_that_is_gone_is_known(side: Side) -> None:
    broker = B.but(name="gone", addr="127.67.1.1:10911")
    assert broker.register(side.scene.k3).code == 0
    assert side("drain", "gone", *WHY).code == ExitCode.OK
    broker.unregister(side.scene.k3)
    assert side("undrain", "gone", "broker-a").words[1:] == [["gone", "yes", "0"], ["broker-a", "no", "2"]]
    assert side("undrain", "gone", "broker-a").code == ExitCode.REFUSED


@pytest.mark.parametrize("command", ["drain", "undrain"])
def test_a_broker_that_goes_after_the_check_is_named_and_the_others_are_done(
    side: Side, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command == "undrain":
        assert side("drain", "broker-a", "broker-b", *WHY).code == ExitCode.OK
    monkeypatch.setattr("mqns.cli.drains._is_known", lambda api, broker: True)
    ended = side(command, "broker-a", "gone", "broker-b", *(WHY if command == "drain" else ()), "-o", "json")
    assert (ended.code, ended.err) == (ExitCode.REFUSED, "mqns: no broker 'gone' (not done: gone)\n")
    assert ended.document == [
        {"brokerName": broker, "changed": True, "topicCount": 2} for broker in ("broker-a", "broker-b")
    ]
    side.comes_to(dict.fromkeys(("broker-a", "broker-b"), 4 if command == "drain" else 6))


def test_drains(side: Side) -> None:
    assert side("drains").words == [["BROKER", "CLUSTER", "OWNER", "SINCE", "UNTIL", "TOPICS", "REASON"]]
    assert side("drains", "-o", "json").document == []
    assert side("drain", "broker-a", *WHY, "--for", "600").code == ExitCode.OK
    assert side("drain", "broker-b", "--owner", "bob", "--reason", "disk").code == ExitCode.OK
    first, second = side("drains", "-o", "json").document
    since, until = first.pop("sinceMillis"), first.pop("untilMillis")
    assert first == {
        "brokerName": "broker-a",
        "cluster": "c1",
        "owner": "alice",
        "reason": "kernel upgrade",
        "topicCount": 2,
        "damaged": False,
    }
    assert (second["brokerName"], second["untilMillis"]) == ("broker-b", None)
    assert side("drains").words[1:] == [
        ["broker-a", "c1", "alice", time_text(since), time_text(until), "2", "kernel", "upgrade"],
        ["broker-b", "c1", "bob", time_text(second["sinceMillis"]), "-", "2", "disk"],
    ]


def test_brokers_show_drains_with_the_http_side(side: Side, mqns: Mqns, unreachable: str) -> None:
    without = mqns("brokers")
    assert side("drain", "broker-a", *WHY).code == ExitCode.OK
    assert mqns("brokers").out == without.out
    listed = mqns("brokers", env={"MQNS_HTTP": side.url})
    assert [row[-1] for row in listed.words] == ["FROM", "alice", "master"]
    document = mqns("brokers", "--http", side.url, "-o", "json").document
    drain = httpx.get(f"{side.url}/v1/brokers/broker-a").json()["drain"]
    assert [broker["drain"] for broker in document] == [drain, None]
    assert [without_drain(broker) for broker in document] == mqns("brokers", "-o", "json").document
    away = mqns("brokers", "--http", f"http://{unreachable}")
    assert (away.code, away.out) == (ExitCode.UNREACHABLE, without.out)
    assert away.err.startswith(f"mqns: http://{unreachable}: ")


def without_drain(document: dict[str, Any]) -> dict[str, Any]:
    """Return what Java's name servers know, too."""
    return {name: value for name, value in document.items() if name not in ("drain", "mirroredFrom")}


def test_permissions_of_a_drained_broker(side: Side, mqns: Mqns) -> None:
    """What is given is stored, and the drain stays: the command says so."""
    assert side("drain", "broker-a", *WHY).code == ExitCode.OK
    side.comes_to({"broker-a": 4, "broker-b": 6})
    given = mqns("permissions", "add", "broker-a", "broker-b", "--http", side.url)
    assert given.code == ExitCode.OK
    assert [row[1:] for row in given.words] == [
        ["SERVER", "BROKER", "TOPICS", "DRAIN"],
        ["broker-a", "2", "alice"],
        ["broker-b", "2"],
    ]
    assert given.err == (
        "mqns: broker-a is drained, and routes show no write permission; to end the drain: mqns undrain broker-a\n"
    )
    wiped = mqns("permissions", "wipe", "broker-a", "broker-b", "--http", side.url, "-o", "json")
    assert [(one["topicCount"], one["drain"] and one["drain"]["owner"]) for one in wiped.document] == [
        (2, "alice"),
        (2, None),
    ]
    assert wiped.err == ""
    assert mqns("permissions", "add", "broker-a", "broker-b").err == ""
    side.comes_to({"broker-a": 4, "broker-b": 6})


def drain_page(**members: object) -> bytes:
    row = dict.fromkeys(("cluster", "owner", "reason", "sinceMillis", "untilMillis"))
    return msgspec.json.encode(
        {"drains": [row | {"brokerName": "b", "topicCount": 1, "damaged": False} | members], "next": None}
    )


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"damaged": True}, ["b", "-", "(damaged)", "-", "-", "1"]),
        (
            {
                "owner": "a\x1b[31m",
                "reason": "two\nlines",
                "sinceMillis": 10**30,
                "untilMillis": -1,
                "cluster": "",
            },
            ["b", "a\\x1b[31m", str(10**30), "1969-12-31T23:59:59Z", "1", "two\\nlines"],
        ),
    ],
)
def test_what_a_terminal_may_be_shown(members: dict[str, object], words: list[str]) -> None:
    with answering(lambda: whole(drain_page(**members)), 0) as url:
        assert run("drains", "--http", url).words[1:] == [words]


def test_a_list_without_end_is_left() -> None:
    endless = msgspec.json.encode({"drains": [], "next": "b"})
    with answering(lambda: whole(endless), 0) as url:
        ended = run("drains", "--http", url)
        assert (ended.code, ended.err) == (
            ExitCode.REFUSED,
            f"mqns: {url}/v1/drains?limit=1000: over 100 pages\n",
        )


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
    for command in (("undrain", "broker-a"), ("drains",)):
        assert run(*command).code == ExitCode.WRONG_USAGE
