"""`mqns ping`."""

import json

import pytest

from mqns.cli.exit_codes import ExitCode
from mqns.cli.ping import PingDocument, PingReply, summary
from testbed.nameserver import NameServer
from tests.mqns.cli.conftest import Mqns, address, run


def test_each_is_asked_as_often_as_wanted(servers: list[NameServer]) -> None:
    where = [address(server) for server in servers]
    ended = run("ping", *where, "-c", "3", "-i", "0")
    assert ended.code == ExitCode.OK
    lines = ended.out.splitlines()
    for server in where:
        answers = [line for line in lines if line.startswith(f"{server}: seq=")]
        assert [line.split()[1:3] for line in answers] == [[f"seq={n}", "V5_5_0"] for n in (1, 2, 3)]
        (summed,) = (
            line for line in lines if line.startswith(f"{server}: 3 sent, 3 answered, 0% lost, min/avg")
        )
        assert summed.endswith(" ms")


def test_statistics(mqns: Mqns) -> None:
    (document,) = mqns("ping", "-c", "2", "-i", "0", "-o", "json").document
    assert (document["sent"], document["answered"], document["lossPercent"]) == (2, 2, 0.0)
    assert 0 < document["minMillis"] <= document["avgMillis"] <= document["maxMillis"]
    times = [PingReply("a:1", n, millis) for n, millis in enumerate((1.0, 2.0, 6.0))]
    lost = PingReply("a:1", 4, failure="gone")
    assert summary("a:1", [*times, lost]) == PingDocument("a:1", 4, 3, 25.0, 1.0, 3.0, 6.0, 2.160)
    assert summary("a:1", [lost]) == PingDocument("a:1", 1, 0, 100.0, None, None, None, None)
    assert summary("a:1", []) == PingDocument("a:1", 0, 0, 0.0, None, None, None, None)


def test_servers_that_do_not_answer(
    mqns: Mqns, servers: list[NameServer], unreachable: str, silent: str
) -> None:
    beside = run("ping", address(servers[0]), unreachable, "-c", "1", "-i", "0", "-o", "json")
    assert beside.code == ExitCode.UNREACHABLE
    assert [document["answered"] for document in json.loads(beside.out)] == [1, 0]
    ended = run("ping", silent, "-c", "2", "-i", "0", "--timeout", "0.05")
    assert ended.code == ExitCode.TIMED_OUT
    assert ended.out.splitlines()[0] == f"{silent}: seq=1 no answer within 0.05 s"
    assert ended.out.splitlines()[-1] == f"{silent}: 2 sent, 0 answered, 100% lost"


def test_interrupted(mqns: Mqns, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at the second request, which would be followed by others for ever."""
    reported: list[object] = []

    def line(self: object, value: object, text: str) -> None:
        reported.append(text)
        if len(reported) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("mqns.cli.output.Printer.line", line)
    ended = mqns("ping", "-c", "0", "-i", "0")
    assert ended.code == ExitCode.OK
    assert "2 sent, 2 answered" in ended.out
