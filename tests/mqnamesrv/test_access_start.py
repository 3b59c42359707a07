"""Starts that the rules of access forbid (row AC-29), from real processes."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from mqnamesrv.store import EmbeddedStore
from testbed.eventually import eventually
from tests.api.gunicorn import ROOT
from tests.mqnamesrv.process import NameServer, environment, mqnamesrv

OPEN = {"MQNS_BIND_ADDRESS": "0.0.0.0", "MQNS_ACCESS_ADMIN": "open"}
REFUSED = [
    pytest.param(OPEN, "accessAdmin=open lets any", "accessInsecure=true", id="open"),
    pytest.param(
        OPEN | {"MQNS_ACCESS_ADMIN": "cidr:0.0.0.0/0"},
        "accessAdmin=cidr:0.0.0.0/0 ",
        "name loopback",
        id="/0",
    ),
    pytest.param(
        {"MQNS_ACCESS_BROKER": "mtls"}, "accessBroker=mtls ", "set it to false", id="no certificates"
    ),
    pytest.param(
        {"MQNS_PROXY_TRUSTED_CIDRS": "::/0"},
        "proxyTrustedCidrs=::/0 ",
        "list the balancers'",
        id="any peer's word",
    ),
    pytest.param(
        {"MQNS_PROXY_TRUSTED_CIDRS": "10.0.0.7", "MQNS_ACCESS_BROKER": "net"},
        "proxyTrustedCidrs=10.0.0.7 is within 10.0.0.0/8 of accessBroker: ",
        "proxyRequired=true",
        id="a silent balancer",
    ),
    pytest.param({"MQNS_ACCESS_READ": "opne"}, "accessRead=opne: ", "docs/access.md", id="no rule"),
]
SIDES = ["gunicorn_remoting wsgi:app", "gunicorn_http wsgi:app", "gunicorn_metrics api.exporter:app"]


@pytest.mark.conformance("AC-29")
@pytest.mark.parametrize(("more", "option", "cure"), REFUSED)
def test_it_does_not_start_and_says_why_in_a_line(
    tmp_path: Path, more: dict[str, str], option: str, cure: str
) -> None:
    done = mqnamesrv(env=environment(tmp_path, **more))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (253, "", 1)
    assert done.stderr.startswith(f"mqnamesrv: {option}")
    assert cure in done.stderr
    assert not (tmp_path / "data").exists()  # refused before anything was started


def test_printing_the_options_says_so_too(tmp_path: Path) -> None:
    done = mqnamesrv("-p", env=environment(tmp_path, **OPEN))
    assert done.returncode == 253
    assert "accessAdmin=open\n" in done.stdout
    assert done.stderr.startswith("mqnamesrv: accessAdmin=open lets any")


@pytest.mark.parametrize(("more", "option", "cure"), REFUSED[:3])
@pytest.mark.parametrize("side", SIDES, ids=["remoting", "http", "metrics"])
def test_gunicorn_by_itself_does_not_start_either(
    tmp_path: Path, store: EmbeddedStore, side: str, more: dict[str, str], option: str, cure: str
) -> None:
    settings, _, app = side.partition(" ")
    command = [sys.executable, "-m", "gunicorn", "-c", f"python:mqnamesrv.{settings}", app]
    env = environment(tmp_path, REDIS_URL=store.url, **more)
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (253, "")
    assert done.stderr.startswith(f"gunicorn: {option}")
    assert cure in done.stderr


@pytest.mark.parametrize(
    "consent",
    [{"MQNS_ACCESS_INSECURE": "true"}, {"MQNS_ACCESS_PROFILE": "java"}],
    ids=["accessInsecure", "java"],
)
def test_with_consent_it_starts_and_shows_it(tmp_path: Path, consent: dict[str, str]) -> None:
    with NameServer(tmp_path, **OPEN, **consent) as server:
        assert httpx.get(f"http://127.0.0.1:{server.http_port}/readyz").json()["insecure"] is True
        lines = [line for line in server.output.splitlines() if "accessAdmin=open lets any" in line]
        assert [("[WARNING]" in line) for line in lines] == [True]  # one, for all processes


def test_a_guarded_start_shows_nothing(tmp_path: Path) -> None:
    with NameServer(tmp_path, MQNS_BIND_ADDRESS="0.0.0.0") as server:
        assert httpx.get(f"http://127.0.0.1:{server.http_port}/readyz").json()["insecure"] is False
        assert "access: " not in server.output


def test_gunicorn_by_itself_warns(tmp_path: Path, store: EmbeddedStore) -> None:
    env = environment(tmp_path, REDIS_URL=store.url, MQNS_ACCESS_INSECURE="true", **OPEN)
    command = [sys.executable, "-m", "gunicorn", "-c", "python:mqnamesrv.gunicorn_http", "wsgi:app"]
    output = tmp_path / "output"
    process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=output.open("w"))
    try:
        eventually(lambda: "[WARNING] gunicorn.error access: accessAdmin=open lets any" in output.read_text())
    finally:
        process.terminate()
        process.wait(20)
