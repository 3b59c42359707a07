"""Which callers the rules admit over HTTP, and what others are answered."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakeredis
import pytest
import redis as redis_py

from api import gate
from api.app import create_app
from api.caller import token_in
from api.counters import COUNTERS
from metrics.catalogue import SECURITY_EVENTS
from metrics.samples import Sample
from mqnamesrv.store import EmbeddedStore
from registry.options.catalogue import Options
from registry.options.profiles import PROFILES
from tests.api.gunicorn import curl, http_workers
from tests.api.http import PROBLEM, Http, Reply, a_broker
from tests.api.test_tokens import access_file
from tests.logged import logged

LOOPBACK, NEAR, FAR = "127.0.0.1", "10.0.0.5", "192.0.2.7"
PATHS = {
    "read": ("GET", "/v1/brokers", None),
    "broker": ("POST", "/v1/brokers", a_broker()),
    "admin": ("DELETE", "/v1/kv/n?all=true", None),
    "config": ("GET", "/v1/options", None),
    "audit": ("GET", "/v1/reports", None),
    "metrics": ("GET", "/metrics", None),
}
"""A request of each class."""
FORWARDING = [
    *("X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1", "Via: 1.1 sidecar", "x-FORWARDED-for: ::1"),
    *("X-Forwarded-For:", "X-Real-IP: 127.0.0.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: ns"),
    *("X-Forwarded-Port: 80", "X-Forwarded-Client-Cert: By=x", "X-Client-IP: 127.0.0.1"),
]


@pytest.fixture(autouse=True)
def log_from_scratch() -> Iterator[None]:
    gate.refusals._sources.clear()
    yield
    gate.refusals._sources.clear()


def an_app(store: Any = None, **options: Any) -> Http:
    store = fakeredis.FakeRedis(decode_responses=True) if store is None else store
    return Http(create_app(Options(**options), redis=store).test_client())


def ask(http: Http, of_class: str, host: str, **headers: str) -> Reply:
    """Send a request of a class from a host."""
    method, path, body = PATHS[of_class]
    return http(method, path, body, environ_overrides={"REMOTE_ADDR": host}, headers=headers)


def admitted(http: Http, host: str) -> set[str]:
    """Return the classes that a host may ask for."""
    return {of_class for of_class in PATHS if ask(http, of_class, host).status not in (401, 403)}


def counted() -> dict[tuple[str, ...], float]:
    """Return what is counted of checks of access, by operation and result."""
    samples = [read for read in COUNTERS.read() if isinstance(read, Sample)]
    return {sample.labels: sample.value for sample in samples if sample.metric is SECURITY_EVENTS}


@pytest.mark.parametrize(
    ("profile", "host", "refused"),
    [
        ("local", LOOPBACK, set()),
        ("guarded", LOOPBACK, set()),
        ("guarded", NEAR, {"admin", "config", "audit"}),
        ("guarded", FAR, {"admin", "config", "audit", "metrics"}),
        ("guarded", "", {"admin", "config", "audit", "metrics"}),
        ("java", NEAR, {"admin", "config", "audit"}),
        ("secure", LOOPBACK, {"admin", "config", "audit"}),
        ("secure", FAR, {"broker", "admin", "config", "audit", "metrics"}),
    ],
)
def test_the_profiles(profile: str, host: str, refused: set[str]) -> None:
    assert set(PATHS) - admitted(an_app(**PROFILES[profile]), host) == refused


def test_probes_and_the_documentation_are_open_to_all() -> None:
    http = an_app(access_read="off", access_metrics="off")
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs", "/", "/docs/page.css"):
        assert http("GET", path, environ_overrides={"REMOTE_ADDR": FAR}).status not in (401, 403), path
    assert http("GET", "/nothing", environ_overrides={"REMOTE_ADDR": FAR}).status == 404


def test_a_refusal_says_what_would_do() -> None:
    reply = ask(an_app(), "admin", FAR)
    assert (reply.status, reply.type, reply.headers["WWW-Authenticate"]) == (401, PROBLEM, "Bearer")
    assert reply.json == {
        "type": "urn:redis-namesrv:unauthenticated",
        "title": "Unauthorized",
        "status": 401,
        "detail": f"access denied: admin needs loopback or token; caller http:{FAR}",
    }


@pytest.mark.parametrize("header", ["Bearer mqns_00000000_x", "Basic YTpi", ""])
def test_a_credential_that_proves_nothing(header: str) -> None:
    """Where nothing is asked for it does no harm: a proxy may have asked for it."""
    reply = ask(an_app(), "admin", FAR, Authorization=header)
    assert (reply.status, reply.headers["WWW-Authenticate"]) == (401, 'Bearer error="invalid_token"')
    assert ask(an_app(), "read", FAR, Authorization=header).status == 200


@pytest.mark.parametrize("header", ["Bearer mqns_00000000_x", "Basic YTpi", "Bearer", ""])
def test_what_is_no_token_is_bad_though_the_store_is_away(storeless: Http, header: str) -> None:
    assert ask(storeless, "admin", FAR, Authorization=header).status == 401
    assert ask(storeless, "metrics", NEAR, Authorization=header).status == 200


def test_a_token_has_blanks_around_it_and_no_other_space() -> None:
    assert token_in({"HTTP_AUTHORIZATION": "beaREr \t mqns \t"}) == "mqns"
    assert token_in({"HTTP_AUTHORIZATION": "Bearer \xa0mqns\x85"}) == "\xa0mqns\x85"


def test_a_refusal_asks_the_store_for_nothing(storeless: Http) -> None:
    for of_class in ("admin", "config", "audit", "metrics"):
        assert ask(storeless, of_class, FAR).status == 401
    assert ask(storeless, "read", FAR).status == 503


def test_a_refused_change_changes_nothing(redis: redis_py.Redis) -> None:
    http = an_app(redis)
    put = {"environ_overrides": {"REMOTE_ADDR": FAR}}
    assert http("PUT", "/v1/kv/n/k", {"value": "x"}, **put).status == 401
    assert http("PUT", "/v1/kv/%FF/k", {"value": 1}, **put).status == 401  # before anything else is looked at
    assert redis.keys() == []


def test_observing_answers_counts_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    http, before = an_app(access_mode="observe"), counted()
    assert [ask(http, "config", FAR).status for _ in range(3)] == [200] * 3
    assert counted()["authz", "denied"] - before["authz", "denied"] == 3
    assert logged(caplog) == [
        f"access denied: config needs loopback or token; caller http:{FAR}, answered all the same "
        "(accessMode=observe); docs/access.md says how to admit callers that are yours"
    ]


def test_what_gives_access_is_refused_while_observing_too(redis: redis_py.Redis, tmp_path: Path) -> None:
    """A token would outlive it."""
    path, tokens = access_file(tmp_path)
    http = an_app(redis, access_mode="observe", access_file=str(path))
    body = {"principal": "mallory", "roles": ["admin"]}
    shown = {"Authorization": f"Bearer {tokens['operator']}"}
    far = {"environ_overrides": {"REMOTE_ADDR": FAR}}
    assert http("POST", "/v1/access/tokens", body, **far).status == 401
    assert http("POST", "/v1/access/revocations", {"credential": "acl:K"}, headers=shown, **far).status == 403
    assert http("DELETE", "/v1/access/revocations/acl%3AK", **far).status == 401
    assert redis.keys() == []
    assert http("POST", "/v1/access/tokens", body).status == 200


def test_observing_logs_a_known_caller_without_the_role(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    path, tokens = access_file(tmp_path)
    http = an_app(access_mode="observe", access_file=str(path))
    shown = {"Authorization": f"Bearer {tokens['operator']}"}
    assert ask(http, "config", FAR, **shown).status == 200
    (line,) = logged(caplog)
    assert "config needs loopback or token, with a role for it; caller token:the-operator, answered" in line


def test_refusals_are_counted_and_what_operators_do() -> None:
    http, before = an_app(), counted()
    for of_class in PATHS:
        ask(http, of_class, LOOPBACK)
    ask(http, "admin", FAR)
    grown = {labels: value - before[labels] for labels, value in counted().items()}
    assert {labels: value for labels, value in grown.items() if value} == {
        ("authz", "allowed"): 2,
        ("authz", "denied"): 1,
    }


def test_a_trusted_proxy_names_the_caller() -> None:
    http = an_app(http_trusted_proxies="10.0.0.0/8", access_admin="loopback cidr:192.0.2.0/24")
    assert ask(http, "admin", NEAR).status == 401
    assert ask(http, "admin", NEAR, **{"X-Forwarded-For": FAR}).status == 404  # there is no such KV
    assert ask(http, "admin", NEAR, **{"X-Forwarded-For": LOOPBACK}).status == 401
    assert ask(http, "admin", "11.0.0.1", **{"X-Forwarded-For": FAR}).status == 401


@pytest.mark.needs("curl")
@pytest.mark.conformance("AC-35")
def test_what_came_through_a_proxy_is_not_of_this_machine(store: EmbeddedStore) -> None:
    """A sidecar makes all the world loopback."""
    with http_workers(store.url, 1) as address:

        def put(*headers: str) -> tuple[int, Any]:
            sent = [
                text for header in ("content-type: application/json", *headers) for text in ("-H", header)
            ]
            status, body = curl("-X", "PUT", *sent, "-d", '{"value":"y"}', f"{address}/v1/kv/n/k")
            return status, json.loads(body)

        assert put()[0] == 200
        for header in FORWARDING:
            # curl sends a header without a value only if it ends with a semicolon
            status, problem = put(f"{header.removesuffix(':')};" if header.endswith(":") else header)
            assert (status, problem["type"]) == (401, "urn:redis-namesrv:unauthenticated"), header
        for twice in (
            ("Via: 1.1 a", "Via: 1.1 b"),
            ("X_Forwarded_For: 10.0.0.1", "X-Forwarded-For: 127.0.0.1"),
        ):
            assert put(*twice)[0] == 401
        assert put("X_Forwarded_For: 10.0.0.1")[0] == 200  # no proxy's, and dropped
        assert curl("-H", "Via: 1.1 a", f"{address}/v1/kv/n/k")[0] == 200
        drain = (
            "-X",
            "PUT",
            "-H",
            "content-type: application/json",
            "-d",
            "{}",
            f"{address}/v1/brokers/b/drain",
        )
        assert curl("-H", "Via: 1.1 a", *drain)[0] == 401
        bad = ("-H", "Via: 1.1 a", "-H", "Authorization: Bearer mqns_00000000_x", "-i", *drain)
        status, answer = curl(*bad)
        assert (status, 'www-authenticate: bearer error="invalid_token"' in answer.lower()) == (401, True)


def test_what_is_no_token_is_refused_and_no_guess() -> None:
    """Browsers send it behind a proxy that asks for passwords, and where a page of another site has them do so."""
    http = an_app(**PROFILES["guarded"])
    for scheme, then in (("Basic dXNlcjp4", 401), ("Bearer", 401), ("Bearer mqns_x", 429)):
        for _ in range(12):
            assert http("GET", "/v1/options", headers={"Authorization": scheme}).status in (401, 429)
        assert http("GET", "/v1/options", headers={"Authorization": scheme}).status == then
