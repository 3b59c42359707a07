"""The exporter of metrics, where there is no HTTP side."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from werkzeug.test import Client

from api.exporter import exporter
from metrics.catalogue import INFLIGHT
from metrics.files import VARIABLE
from metrics.metric import Scope
from metrics.publisher import Publisher
from metrics.samples import Sample
from registry.options.catalogue import Options
from testbed.eventually import eventually
from testbed.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
SHOWN = 'rocketmq_namesrv_inflight_requests{ns="default"} 7.0'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which another process has published something."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    Publisher("default", Scope.REMOTING, "remoting", lambda: [Sample(INFLIGHT, (), 7)]).publish()
    return tmp_path


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    port = free_port()
    command = ["-m", "gunicorn", "-c", "python:mqnamesrv.gunicorn_metrics", "api.exporter:app"]
    env = {**os.environ, "MQNS_METRICS_PORT": str(port)}
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=env)
    url = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: answers(url), 20)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz").status_code == 200
    except httpx.TransportError:
        return False


def test_it_shows_what_other_processes_count_and_nothing_of_its_own(url: str) -> None:
    reply = httpx.get(f"{url}/metrics")
    assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert SHOWN in reply.text
    assert 'role="http"' not in reply.text
    assert "http_requests_total{" not in reply.text


def test_other_paths_and_methods(url: str) -> None:
    assert httpx.get(f"{url}/v1/brokers").status_code == 404
    assert httpx.post(f"{url}/metrics").status_code == 405
    head = httpx.head(f"{url}/metrics")
    assert (head.status_code, head.text) == (200, "")


def test_who_may_scrape_is_the_rule_of_metrics(folder: Path) -> None:
    client = Client(exporter(Options(access_metrics="net")))

    def scrape(path: str, host: str, **headers: str) -> tuple[int, str]:
        reply = client.get(path, environ_overrides={"REMOTE_ADDR": host}, headers=headers)
        return reply.status_code, reply.text

    assert scrape("/metrics", "10.0.0.1")[0] == 200
    assert scrape("/healthz", "192.0.2.7")[0] == 200
    status, text = scrape("/metrics", "192.0.2.7")
    assert (status, SHOWN in text) == (401, False)
    assert json.loads(text)["detail"] == "access denied: metrics needs net; caller http:192.0.2.7"
    assert scrape("/metrics", "127.0.0.1", Via="1.1 sidecar")[0] == 401


def test_it_answers_no_other_host(url: str) -> None:
    assert httpx.get(f"{url}/metrics", headers={"Host": "evil.example"}).status_code == 400
    assert httpx.get(f"{url}/healthz", headers={"Host": "evil.example"}).status_code == 400
    assert httpx.get(f"{url}/metrics", headers={"Host": "localhost"}).status_code == 200
