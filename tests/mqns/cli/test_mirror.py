"""`mqns mirror` from one server of ours to the other: rounds, what they print, and how they end."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest

from mqns.cli.exit_codes import ExitCode
from mqns.cli.mirror import round_line
from mqns.mirror.rounds import Round
from mqns.mirror.service_start import ServiceStart
from mqns.mirror.target import MirroredMember
from mqns.remoting.remoting_client import AsyncRemotingClient
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.remoting_command import Command
from rocketmq_remoting.version import V5_0_0
from testbed.eventually import eventually
from testbed.scene import Scene
from tests.mqns.cli.conftest import ENVIRONMENT, Ended, address, http_side, run


class Pair:
    """A name server with two brokers, and one that mirrors them."""

    def __init__(self, scenes: list[Scene]) -> None:
        self.old, self.new = scenes
        self.old.f3()
        self.url = http_side(self.new.server)

    def __call__(self, *arguments: str) -> Ended:
        return run("mirror", address(self.old.server), "--http", self.url, *arguments)

    def marks(self) -> dict[str, str | None]:
        listed = httpx.get(f"{self.url}/v1/brokers").json()["brokers"]
        return {one["brokerName"]: one["members"][0]["mirroredFrom"] for one in listed}


@pytest.fixture
def pair(scenes: list[Scene]) -> Iterator[Pair]:
    made = Pair(scenes)
    yield made
    for name, mark in made.marks().items():
        (member,) = httpx.get(f"{made.url}/v1/brokers/{name}").json()["members"]
        where = {"cluster": member["cluster"], "brokerAddr": member["brokerAddr"]}
        if mark is None:
            httpx.delete(f"{made.url}/v1/brokers/{name}", params=where).raise_for_status()
        else:
            gone = httpx.delete(f"{made.url}/v1/mirrored-brokers", params=where | {"mirroredFrom": mark})
            gone.raise_for_status()
    httpx.delete(f"{made.url}/v1/kv/ORDER_TOPIC_CONFIG?all=true")


def test_one_round_mirrors_all_and_the_next_changes_nothing(pair: Pair) -> None:
    ended = pair("--once", "-o", "json")
    assert ended.code == ExitCode.OK
    mark = address(pair.old.server)
    assert [member["brokerName"] for member in ended.document["registered"]] == ["broker-a", "broker-b"]
    assert pair.marks() == {"broker-a": mark, "broker-b": mark}
    assert set(pair.new.topics()) == set(pair.old.topics())
    eventually(lambda: pair.new.queues("TA") == pair.old.queues("TA"))
    assert pair("--once").out == "2 mirrored, 0 registered themselves\n"
    shown = run("-n", address(pair.new.server), "brokers", "--http", pair.url, "-o", "json").document
    assert {row["mirroredFrom"] for row in shown} == {mark}
    assert run("-n", address(pair.new.server), "brokers", "--http", pair.url).words[0][-2:] == [
        "MIRRORED",
        "FROM",
    ]


def test_what_is_gone_there_goes_here(pair: Pair) -> None:
    assert pair("--once").code == ExitCode.OK
    httpx.delete(
        f"{http_side(pair.old.server)}/v1/brokers/broker-b",
        params={"cluster": "c1", "brokerAddr": "127.10.0.3:10911"},
    ).raise_for_status()
    eventually(lambda: "broker-b" not in pair.old.brokers())
    assert "removed: broker-b (id 0, 127.10.0.3:10911)" in pair("--once").out
    assert pair.marks().keys() == {"broker-a"}


def test_a_broker_that_registers_itself_is_left_alone(pair: Pair) -> None:
    assert pair("--once").code == ExitCode.OK
    pair.new.f3()
    assert pair.marks() == {"broker-a": None, "broker-b": None}
    ended = pair("--once")
    assert (ended.code, ended.out.partition(";")[0]) == (0, "0 mirrored, 2 registered themselves")


def test_a_dry_run_says_what_would_be_registered_and_changes_nothing(pair: Pair) -> None:
    pair.old.put_kv("ORDER_TOPIC_CONFIG", "TA", "broker-a:4")
    ended = pair("--dry-run")
    assert ended.code == ExitCode.OK
    assert ended.out.startswith("dry run: ")
    assert "registered: broker-a (id 0, 127.10.0.1:10911), broker-b" in ended.out
    assert "KV: ORDER_TOPIC_CONFIG/TA" in ended.out
    assert pair.marks() == {}
    assert httpx.get(f"{pair.url}/v1/kv/ORDER_TOPIC_CONFIG").status_code == httpx.codes.NOT_FOUND
    assert pair("--once", "--no-kv").code == ExitCode.OK
    assert httpx.get(f"{pair.url}/v1/kv/ORDER_TOPIC_CONFIG").status_code == httpx.codes.NOT_FOUND
    assert pair("--once").code == ExitCode.OK
    assert httpx.get(f"{pair.url}/v1/kv/ORDER_TOPIC_CONFIG/TA").json()["value"] == "broker-a:4"


def test_it_goes_on_until_sigterm_and_leaves_what_it_mirrored(pair: Pair) -> None:
    words = [sys.executable, "-m", "mqns.cli", "mirror", address(pair.old.server), "--http", pair.url]
    env = {name: value for name, value in (os.environ | ENVIRONMENT).items() if value is not None}
    with subprocess.Popen(
        [*words, "--every", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True
    ) as mirror:
        eventually(lambda: pair.marks().keys() == {"broker-a", "broker-b"})
        lease = httpx.get(f"{pair.url}/v1/brokers/broker-a").json()["members"][0]["lease"]["endMillis"]
        eventually(
            lambda: (
                httpx.get(f"{pair.url}/v1/brokers/broker-a").json()["members"][0]["lease"]["endMillis"]
                > lease
            )
        )
        mirror.send_signal(signal.SIGTERM)
        out, err = mirror.communicate()
    assert mirror.returncode == ExitCode.OK
    assert out.count("\n") == 1
    assert "rounds: 2 registered, 0 changed, 0 removed; 2 brokers are mirrored at the end" in err
    assert pair.marks().keys() == {"broker-a", "broker-b"}


def test_name_servers_that_do_not_answer_have_a_code(pair: Pair, unreachable: str) -> None:
    ended = run("mirror", unreachable, "--http", pair.url, "--once")
    assert ended.code == ExitCode.UNREACHABLE
    assert ended.out.count(unreachable) == 1
    assert f"{unreachable}: not connected: " in ended.out


@pytest.mark.parametrize("how", ["--once", "--dry-run"])
def test_an_http_side_that_does_not_answer_has_that_code_too(pair: Pair, unreachable: str, how: str) -> None:
    ended = run("mirror", address(pair.old.server), "--http", f"http://{unreachable}", how)
    assert ended.code == ExitCode.UNREACHABLE
    assert f"http://{unreachable}: " in ended.out


def test_an_http_port_as_a_source_is_named(pair: Pair) -> None:
    port = http_side(pair.old.server).removeprefix("http://")
    ended = run("mirror", port, "--http", pair.url, "--once", "--timeout", "0.5")
    assert ended.code == ExitCode.UNREACHABLE
    assert f"; {port}: it speaks HTTP (GET /healthz: status 200)" in ended.out


@pytest.mark.parametrize("how", ["--once", "--dry-run", "--every=1"])
def test_the_target_is_no_source(pair: Pair, how: str) -> None:
    """By whichever name; what it has as mirrored is not renewed by it."""
    new = f"localhost:{pair.new.server.port}"
    ended = pair(new, how)
    assert (ended.code, ended.out) == (ExitCode.WRONG_USAGE, "")
    assert f"{new}: it is the name server that is written to" in ended.err
    assert pair.marks() == {}
    assert pair("--once").code == ExitCode.OK
    assert run("mirror", new, "--http", pair.url, how).code == ExitCode.WRONG_USAGE


def test_the_doctor_says_that_brokers_are_mirrored_only_at_the_http_side_that_has_them(pair: Pair) -> None:
    assert pair("--once").code == ExitCode.OK
    both = [address(pair.old.server), address(pair.new.server)]

    def mirrored() -> list[list[str]]:
        document = run("doctor", *both, "--http", pair.url, "--recheck", "0", "-o", "json").document
        return [one["nameServers"] for one in document["findings"] if one["check"] == "broker-mirrored"]

    assert eventually(mirrored) == [[pair.url]]


def test_the_help_and_the_page_write_sources_alike() -> None:
    assert "mqns mirror [OPTIONS] {ADDR}..." in run("mirror", "--help").out
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
    assert "`mirror ADDR... --http URL`" in page


def test_java_is_asked_once_over_a_connection_whose_service_it_is() -> None:
    """Servers of 4.x would not answer, those of 5.x log each such request."""

    async def asked(version: int) -> list[int]:
        codes = []

        class Remoting:
            async def invoke(self, address: str, request: Command, *, timeout_s: float) -> Command:
                codes.append(request.code)
                return Command(code=3, opaque=1, version=version)

        start = ServiceStart(cast(AsyncRemotingClient, Remoting()), "10.0.0.1:9876", lambda: 1, 1.0)
        assert [await start(), await start()] == [None, None]
        return codes

    assert asyncio.run(asked(V5_0_0 - 1)) == [RequestCode.GET_KV_CONFIG]
    assert asyncio.run(asked(V5_0_0)) == [RequestCode.GET_KV_CONFIG, RequestCode.CHECK_READINESS]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("nowhere:port",), "ADDR: "),
        ((";".join(f"10.0.0.{n}:9876" for n in range(99)),), "255 characters"),
        (("10.0.0.1", "--every", "31"), "--every"),
        (("10.0.0.1", "--rate", "0"), "--rate"),
    ],
)
def test_wrong_usage_is_named(arguments: tuple[str, ...], text: str) -> None:
    ended = run("mirror", *arguments, "--http", "http://127.0.0.1:1")
    assert ended.code == ExitCode.WRONG_USAGE
    assert text in ended.err


def test_a_line_names_a_few_and_counts_the_others() -> None:
    members = tuple(MirroredMember("c1", f"b{n}", 0, f"10.0.0.{n}:1") for n in range(7))
    line = round_line(
        Round(removed=members, reading=("x",), topics_left_out=3, sources={"s": "away", "t": None})
    )
    assert line.endswith(
        "b4 (id 0, 10.0.0.4:1) and 2 more; topics are being read of x; 3 topics are not mirrored, since they are "
        "static or not valid here; s: away"
    )
