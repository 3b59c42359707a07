"""Writes that browsers send for pages of other sites; AC-38: they are refused."""

from typing import Any

import pytest

from api.cross_site import is_own
from mqnamesrv.store import EmbeddedStore
from tests.api.gunicorn import curl, http_workers
from tests.api.http import Http

WRITES = [
    ("PUT", "/v1/kv/n/k"),
    ("POST", "/v1/events/checkpoints"),
    ("PATCH", "/v1/settings"),
    ("DELETE", "/v1/kv/n/k"),
    ("DELETE", "/v1/hold"),
    ("PUT", "/none"),
    ("FETCH", "/v1/kv/n/k"),
]
FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:8080"},
    {"Origin": "https://localhost:80"},
    {"Origin": "localhost"},
    {"Origin": ""},
    {"Origin": "chrome-extension://localhost"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
    {"Origin": "http://evil.example", "Authorization": "Bearer mqns_0_0"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize(("method", "path"), WRITES, ids=" ".join)
def test_foreign_writes_are_refused(quick: Http, method: str, path: str, headers: dict[str, str]) -> None:
    reply = quick(method, path, {"value": "x"}, headers=headers)
    assert (reply.status, reply.json["type"]) == (403, "urn:redis-namesrv:cross-site")


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_foreign_reads_are_answered_without_a_header_of_cors(
    quick: Http, method: str, headers: dict[str, str]
) -> None:
    asked = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "content-type"}
    reply = quick.client.open("/v1/kv", method=method, headers=headers | asked)
    assert reply.status_code == 200
    assert not [name for name, _ in reply.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "PUT"])
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/docs",
        "/docs/start.js",
        "/openapi.json",
        "/metrics",
        "/healthz",
        "/readyz",
        "/v1/options",
        "/none",
    ],
)
def test_no_answer_has_a_header_of_cors(quick: Http, path: str, method: str) -> None:
    reply = quick.client.open(path, method=method, headers={"Origin": "http://evil.example"})
    assert not [name for name, _ in reply.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://localhost"},
        {"Origin": "https://localhost"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://LOCALHOST:8080", "Host": "localhost:8080"},
    ],
    ids=str,
)
def test_writes_of_scripts_and_of_our_own_pages_are_done(http: Http, headers: dict[str, str]) -> None:
    assert http("PUT", "/v1/kv/n/k", {"value": "x"}, headers=headers).status == 200


@pytest.mark.parametrize(
    ("origin", "host", "own"),
    [
        ("https://ns.example.com", "ns.example.com", True),
        ("https://ns.example.com", "ns.example.com:443", True),
        ("https://ns.example.com:443", "ns.example.com", True),
        ("https://ns.example.com", "ns.example.com:80", False),
        ("http://ns.example.com", "ns.example.com:80", True),
        ("http://[::1]:8080", "[::1]:8080", True),
        ("http://[fd00::80]", "[fd00::]", False),
        ("http://ns.example.com:8080", "ns.example.com", False),
        ("http://a.example http://b.example", "a.example", False),
        ("http://", "", False),
        ("http://ns.example.com", "", False),
        ("null", "null", False),
        ("", "", False),
    ],
)
def test_an_origin_is_own_by_host_and_port(origin: str, host: str, own: bool) -> None:
    assert is_own(origin, host) == own


@pytest.mark.conformance("AC-38")
@pytest.mark.needs("curl")
def test_through_gunicorn(store: EmbeddedStore) -> None:
    """AC-38, with curl; a refused write changes nothing."""
    body: Any = ("-X", "PUT", "-H", "content-type: application/json", "-d", '{"value":"x"}')
    with http_workers(store.url, 1) as address:
        url = f"http://{address}/v1/kv/n/k"
        assert curl(*body, "-H", "Origin: http://evil.example", url)[0] == 403
        assert curl(*body, "-H", "Sec-Fetch-Site: same-site", url)[0] == 403
        assert curl(url)[0] == 404
        _, preflight = curl("-i", "-X", "OPTIONS", "-H", "Origin: http://evil.example", url)
        assert "200 OK" in preflight
        assert "access-control" not in preflight.lower()
        assert curl(*body, "-H", f"Origin: http://{address}", url)[0] == 200
