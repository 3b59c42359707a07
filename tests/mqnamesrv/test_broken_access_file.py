"""An access file that is broken while a server runs: it is seen, and what runs goes on."""

import os
import signal
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from testbed.access_file import AccessFile
from testbed.eventually import eventually, stays
from tests.mqnamesrv.process import NameServer
from tests.mqnamesrv.test_metrics import value

RIGHT = '[principals.ci]\nroles = ["reader"]\n'
WRONG = f'{RIGHT}role = ["broker"]\n'
REASON = "principal ci: role: is unknown; there are roles, limits, keys, certificates, tokens"
GAUGE = "access_file_last_reload_successful"
FINDING = "access-file-refused"


class Broken(NamedTuple):
    """A server, and its access file."""

    server: NameServer
    file: AccessFile

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.server.http_port}"

    def findings(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = httpx.get(f"{self.http}/v1/doctor", timeout=30).json()["findings"]
        return [finding for finding in found if finding["check"] == FINDING]

    def workers(self, *sides: str) -> set[int]:
        """Return the workers of these sides."""
        return set().union(*(self.server.pids(f"worker [mqnamesrv-{side}]") for side in sides))

    def serves(self) -> bool:
        """Return whether both sides answer."""
        ready = httpx.get(f"{self.http}/readyz", timeout=30).status_code == HTTPStatus.OK
        return ready and self.server.kv("n", "k") is None


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Broken]:
    file = AccessFile(tmp_path)
    file.write(RIGHT)
    options = {"MQNS_REMOTING_WORKERS": "1", "MQNS_HTTP_WORKERS": "1", "MQNS_ACCESS_FILE": str(file.path)}
    with NameServer(tmp_path, **options) as server:
        eventually(lambda: value(server, GAUGE) == 1, 10)
        file.write(WRONG)
        yield Broken(server, file)


@pytest.mark.conformance("AC-32")
def test_metrics_and_doctor_say_so_until_it_is_right(broken: Broken) -> None:
    eventually(lambda: value(broken.server, GAUGE) == 0, 10)
    (finding,) = broken.findings()
    assert REASON in finding["what"]
    assert (finding["severity"], finding["subjects"]) == ("error", [])
    broken.file.write(RIGHT)
    eventually(lambda: value(broken.server, GAUGE) == 1, 10)
    assert broken.findings() == []


@pytest.mark.parametrize("side", ["remoting", "http"])
def test_a_worker_that_begins_meanwhile_waits_until_it_is_right(broken: Broken, side: str) -> None:
    other = "http" if side == "remoting" else "remoting"
    eventually(lambda: value(broken.server, GAUGE) == 0, 10)
    kept, before = broken.workers(other), broken.workers(side)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: "this worker serves nothing" in broken.server.output, 10)
    waiting = broken.workers(side) - before
    stays(lambda: (broken.workers(side), broken.workers(other)) == (waiting, kept), for_s=0.9, every_s=0.3)
    assert "Traceback" not in broken.server.output
    assert broken.server.output.count("this worker serves nothing") == 1
    broken.file.write(RIGHT)
    eventually(broken.serves, 10)
    assert (broken.workers(side), broken.workers(other)) == (waiting, kept)


def test_one_that_waits_ends_when_it_is_asked_to(broken: Broken) -> None:
    eventually(lambda: value(broken.server, GAUGE) == 0, 10)
    for pid in broken.workers("remoting", "http"):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: broken.server.output.count("this worker serves nothing") == 2, 10)
    began = time.monotonic()
    assert broken.server.stop() == 0
    assert time.monotonic() - began < 3


def test_a_reload_meanwhile_replaces_no_worker(broken: Broken) -> None:
    eventually(lambda: value(broken.server, GAUGE) == 0, 10)
    before = broken.workers("remoting", "http")
    broken.server.send(signal.SIGHUP)
    eventually(lambda: "SIGHUP: no worker is reloaded" in broken.server.output, 10)
    assert REASON in broken.server.output.rpartition("SIGHUP: no worker is reloaded")[2]
    stays(lambda: broken.workers("remoting", "http") == before, for_s=0.9, every_s=0.3)
    broken.file.write(RIGHT)
    broken.server.send(signal.SIGHUP)
    eventually(lambda: broken.workers("remoting", "http").isdisjoint(before), 20)
    eventually(broken.serves, 10)
