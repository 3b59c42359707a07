"""The names by which the HTTP side may be asked; AC-38: any request for another is refused."""

import logging
import socket
from pathlib import Path
from typing import Any

import fakeredis
import httpx
import pytest

from api import allowed_hosts
from api.allowed_hosts import own_names
from api.app import create_app
from api.counters import HttpCounters
from metrics.samples import Sample
from mqnamesrv.store import EmbeddedStore
from registry.options.catalogue import Options
from tests.api.gunicorn import curl, http_workers
from tests.api.http import PROBLEM, Http

EVIL = "evil.example"
LISTED = "ns.example.com, .svc.cluster.local"


def http_of(**options: Any) -> Http:
    store: Any = fakeredis.FakeRedis(decode_responses=True)
    return Http(create_app(Options(**options), redis=store).test_client())


def status_for(http: Http, host: str, path: str = "/healthz") -> int:
    return http("GET", path, environ_overrides={"HTTP_HOST": host}).status


def status_of(address: str, *headers: str) -> int:
    """Return the status of an answer to GET /healthz with these lines."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as peer:
        peer.sendall("\r\n".join(("GET /healthz HTTP/1.1", *headers, "Connection: close", "", "")).encode())
        return int(peer.makefile().readline().split()[1])


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.1:8080", "192.0.2.7:80", "[::1]", "[2001:db8::1]:8080", "localhost"),
        *("LocalHost:8080", "localhost.", socket.gethostname(), f"{socket.gethostname().upper()}.:8080"),
    ],
)
def test_addresses_and_this_machine_are_always_allowed(host: str) -> None:
    assert status_for(http_of(), host) == 200


@pytest.mark.parametrize(
    "host",
    [
        *(EVIL, f"{EVIL}:8080", "localhost.evil.example", "127.0.0.1.evil.example", "evil.localhost"),
        *(
            "ns.example.com",
            "[evil.example]",
            "localhost:x",
            "localhost@evil.example",
            "localhost, evil",
            " ",
        ),
        *("127.1", "0x7f000001", "::1", "[::1", "localhost..", "x" * 60_000, "\xe9vil"),
    ],
)
def test_other_names_are_refused(host: str) -> None:
    assert status_for(http_of(), host) == 400


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("ns.example.com", 200),
        ("NS.Example.COM.:8080", 200),
        ("a.ns.example.com", 400),
        ("example.com", 400),
        ("mq-http.rocketmq.svc.cluster.local:8080", 200),
        ("svc.cluster.local", 400),
        ("evilsvc.cluster.local", 400),
        (f"{EVIL},a.svc.cluster.local", 400),
        (f"{EVIL}/.svc.cluster.local", 400),
        (EVIL, 400),
        ("localhost", 200),
    ],
)
def test_listed_names_and_those_below_a_suffix_are_allowed(host: str, status: int) -> None:
    assert status_for(http_of(http_allowed_hosts=LISTED), host) == status


def test_a_star_allows_all() -> None:
    assert status_for(http_of(http_allowed_hosts="*"), EVIL) == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/healthz"), ("GET", "/metrics"), ("PUT", "/v1/kv/n/k"), ("DELETE", "/none"), ("OPTIONS", "/")],
)
def test_it_is_refused_before_anything_else_is_looked_at(storeless: Http, method: str, path: str) -> None:
    reply = storeless(method, path, environ_overrides={"HTTP_HOST": f"{EVIL}:8080"}, data=b"no JSON")
    assert (reply.status, reply.type) == (400, PROBLEM)
    assert reply.json["type"] == "urn:redis-namesrv:host-not-allowed"
    assert EVIL in reply.json["detail"]
    assert "httpAllowedHosts" in reply.json["detail"]


def test_refusals_are_counted_as_requests_of_no_route(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = HttpCounters()
    monkeypatch.setattr("api.app.COUNTERS", counts)
    http = http_of()
    for _ in range(3):
        status_for(http, EVIL)
    values = {sample.labels: sample.value for sample in counts.read() if isinstance(sample, Sample)}
    assert values[("other", "other", "400")] == 3


def test_a_refusal_of_head_has_no_body() -> None:
    client = http_of().client
    reply = client.head("/healthz", environ_overrides={"HTTP_HOST": EVIL})
    assert (reply.status_code, reply.data) == (400, b"")


def test_a_proxy_s_headers_name_no_host() -> None:
    headers = {"X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"}
    assert http_of()("GET", "/healthz", environ_overrides={"HTTP_HOST": EVIL}, headers=headers).status == 400
    assert http_of()("GET", "/healthz", headers={"X-Forwarded-Host": EVIL}).status == 200


def test_refusals_are_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    http = http_of()
    with caplog.at_level(logging.WARNING, allowed_hosts.__name__):
        for number in range(100):
            status_for(http, f"evil{number}.example\x1b[2J")
    assert len(caplog.records) <= 1
    assert all("\x1b" not in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("127.0.0.1 localhost\n127.0.1.1\tns.example.com ns\n", {"ns", "ns.example.com"}),
        ("10.0.0.7 NS.Example.com. # ns.evil.example\n", {"ns", "ns.example.com"}),
        ("10.0.0.8 nsx.example.com other.example.com\n", {"ns"}),
        ("\xff\n10.0.0.8", {"ns"}),
        (None, {"ns"}),
    ],
)
def test_this_machine_s_names_are_read_locally(
    text: str | None, names: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "NS")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("DNS was asked"))
    file = tmp_path / "hosts"
    if text is not None:
        file.write_text(text, encoding="latin-1")
    assert own_names(file) == names


@pytest.mark.conformance("AC-38")
@pytest.mark.needs("curl")
def test_through_gunicorn(store: EmbeddedStore) -> None:
    """HTTP/1.0 without Host, as HAProxy checks health, is answered; a refused request leaves its connection usable."""
    with http_workers(store.url, 1) as address:
        url = f"http://{address}/healthz"
        assert curl(url)[0] == 200
        assert curl("-H", f"Host: {EVIL}", url)[0] == 400
        assert curl("--http1.0", "-H", "Host:", url)[0] == 200
        assert status_of(address, "Host: localhost", f"Host: {EVIL}") == 400
        with httpx.Client(trust_env=False) as client:
            put = client.put(
                f"http://{address}/v1/kv/n/k", json={"value": "x" * 9_000}, headers={"Host": EVIL}
            )
            assert (put.status_code, put.headers["Content-Type"]) == (400, PROBLEM)
            assert client.get(url).status_code == 200
            assert client.get(f"http://{address}/v1/kv/n/k").status_code == 404
