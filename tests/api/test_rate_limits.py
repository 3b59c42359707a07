"""How often an actor or an address may ask over HTTP, and that no limit is in the way of probes or of a store away."""

import logging
import time
from functools import partial
from typing import Any

import fakeredis
import httpx
import pytest
import redis as redis_py
from redis.exceptions import ResponseError

from api import rate_limits
from api.app import create_app
from api.counters import COUNTERS
from metrics.samples import Sample
from mqnamesrv.store import EmbeddedStore
from registry.options.catalogue import Options
from registry.rate import RateMeter
from tests.api.gunicorn import http_workers
from tests.api.http import PROBLEM, Http, Reply
from worker.logs.rate_limited_log import RateLimitedLog

OPEN: dict[str, Any] = {"access_admin": "open", "access_config": "open"}
PROXIED = {"http_trusted_proxies": "10.0.0.0/8", "http_user_header": "X-User"}
BODY = {"value": "x"}


def http_of(redis: Any = None, **options: Any) -> Http:
    store: Any = redis or fakeredis.FakeRedis(decode_responses=True)
    return Http(create_app(Options(**OPEN, **options), redis=store).test_client())


def read(http: Http, address: str = "192.0.2.1", path: str = "/v1/options", **headers: str) -> Reply:
    return http("GET", path, environ_overrides={"REMOTE_ADDR": address}, headers=headers)


def write(http: Http, address: str = "192.0.2.1", **headers: str) -> Reply:
    overrides = {"REMOTE_ADDR": address}
    return http("PUT", "/v1/kv/n/k", BODY, environ_overrides=overrides, headers=headers)


def refusals(option: str) -> float:
    return sum(
        sample.value
        for sample in COUNTERS.read()
        if isinstance(sample, Sample)
        and sample.metric.name == "limit_refusals_total"
        and sample.labels == (option,)
    )


@pytest.fixture
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What meters made meanwhile admit is no more a moment later, however long that is on a busy machine."""
    monkeypatch.setattr(rate_limits, "RateMeter", partial(RateMeter, clock=lambda: 1000.0))


@pytest.mark.usefixtures("no_time_passes")
def test_reads_beyond_the_limit_are_refused_and_others_are_not() -> None:
    http = http_of(http_reads_per_second=2)
    before = refusals("httpReadsPerSecond")
    assert [read(http).status for _ in range(4)] == [200] * 4  # twice as many at once
    reply = read(http)
    assert (reply.status, reply.type, reply.headers["Retry-After"]) == (429, PROBLEM, "1")
    assert reply.json["type"] == "urn:redis-namesrv:too-many-requests"
    assert "httpReadsPerSecond" in reply.json["detail"]
    assert refusals("httpReadsPerSecond") == before + 1
    assert read(http, path="/none").status == 429
    assert read(http, "192.0.2.2").status == 200
    for path in ("/healthz", "/readyz", "/metrics"):
        assert read(http, path=path).status != 429
    assert write(http).status == 200


def test_writes_beyond_the_limit_are_refused_and_do_nothing(redis: redis_py.Redis) -> None:
    http = http_of(redis, http_writes_per_second=3)
    before = refusals("httpWritesPerSecond")
    statuses = [write(http).status for _ in range(20)]
    assert statuses[:3] == [200] * 3
    assert statuses.count(429) >= 10
    assert refusals("httpWritesPerSecond") == before + statuses.count(429)
    assert write(http, "192.0.2.2").status == 200
    assert [read(http).status for _ in range(20)] == [200] * 20


def test_writes_to_no_path_do_not_ask_the_store(redis: redis_py.Redis) -> None:
    """They are refused without a right, and of any peer."""
    http = http_of(redis, http_writes_per_second=3)
    assert [http("POST", "/none", BODY).status for _ in range(20)] == [404] * 20
    assert [http("DELETE", "/v1/options").status for _ in range(20)] == [405] * 20
    assert not [key for key in redis.scan_iter() if "writes" in key]
    assert write(http).status == 200
    assert [key for key in redis.scan_iter() if "writes" in key]


def test_zero_is_no_limit() -> None:
    http = http_of()
    assert {read(http).status for _ in range(300)} == {write(http).status for _ in range(50)} == {200}


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_addresses_of_one_link_count_together(one: str, other: str, together: bool) -> None:
    http = http_of(http_reads_per_second=1)
    assert [read(http, one).status for _ in range(2)] == [200, 200]
    assert read(http, other).status == (429 if together else 200)


def test_a_user_that_a_trusted_proxy_names_counts_wherever_it_is() -> None:
    http = http_of(http_reads_per_second=1, **PROXIED)
    alice = {"X-Forwarded-For": "192.0.2.1", "X-User": "alice"}
    assert [read(http, "10.0.0.1", **alice).status for _ in range(2)] == [200, 200]
    assert read(http, "10.0.0.2", **alice | {"X-Forwarded-For": "192.0.2.9"}).status == 429
    assert read(http, "10.0.0.1", **alice | {"X-User": "bob"}).status == 200
    assert read(http, "192.0.2.1").status == 200


@pytest.mark.parametrize("error", [ResponseError("NOPERM"), ResponseError("WRONGTYPE")])
def test_a_limit_that_the_store_does_not_apply_lets_through_and_says_so(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    http = http_of(http_writes_per_second=1)
    monkeypatch.setattr(rate_limits, "log", RateLimitedLog(logging.getLogger(rate_limits.__name__)))

    def broken(*_: Any) -> Any:
        raise error
        yield

    monkeypatch.setattr(rate_limits, "acquire_write", broken)
    assert {write(http).status for _ in range(20)} == {200}
    lines = [record for record in caplog.records if "are not limited" in record.message]
    assert len(lines) == 1


def test_a_store_that_is_away_is_a_503_and_no_429() -> None:
    store = redis_py.Redis(port=1, decode_responses=True)
    http = http_of(store, http_writes_per_second=1)
    assert {write(http).status for _ in range(3)} == {503}


def test_workers_count_writes_together(store: EmbeddedStore) -> None:
    with (
        http_workers(store.url, 2, http_writes_per_second=5) as address,
        httpx.Client(trust_env=False) as client,
    ):
        url = f"http://{address}/v1/kv/n/k"
        began_s = time.monotonic()
        statuses = []
        for _ in range(60):  # each over a connection of its own, so that both workers have some
            headers = {"Connection": "close"}
            statuses.append(client.put(url, json=BODY, headers=headers).status_code)
        most = 5 + 5 * (time.monotonic() - began_s) + 1
        assert set(statuses) == {200, 429}
        assert 5 <= statuses.count(200) <= most
