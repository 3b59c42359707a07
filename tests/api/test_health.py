"""Liveness and readiness, as orchestrators probe them."""

import socket
import time

import pytest
import redis as redis_py

from api.app import create_app
from registry.keys import Keys
from registry.options.catalogue import Options
from tests.api.http import Http


def test_a_process_is_healthy_without_its_store(storeless: Http) -> None:
    assert storeless.ok("GET", "/healthz") == {"status": "alive"}


def test_readiness_shows_the_lease_clock(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    tick_ms = int(redis.hget(keys.events_meta, "tick_ms") or 0)
    ready = http.ok("GET", "/readyz")
    assert ready["status"] == "ready"
    assert ready["tickMillis"] == ready["startedMillis"] == ready["followMillis"] == tick_ms
    assert 0 <= ready["nowMillis"] - tick_ms < 5000
    assert ready["holdUntilMillis"] is None


@pytest.mark.parametrize(
    ("field", "age_ms", "status"),
    [
        pytest.param("tick_ms", 3000, 200, id="a worker ticked within 5 s"),
        pytest.param("tick_ms", 6000, 503, id="none for longer"),
        pytest.param("tick_ms", None, 503, id="none ever"),
        pytest.param("follow_ms", 3000, 200, id="a worker followed the stream within 5 s"),
        pytest.param("follow_ms", 6000, 503, id="no worker followed for longer"),
        pytest.param("follow_ms", None, 200, id="workers of an earlier release do not say"),
    ],
)
def test_ready_while_workers_renew_leases_and_follow_the_stream(
    http: Http, redis: redis_py.Redis, keys: Keys, field: str, age_ms: int | None, status: int
) -> None:
    seconds, micros = redis.time()
    if age_ms is None:
        redis.hdel(keys.events_meta, field)
    else:
        redis.hset(keys.events_meta, field, seconds * 1000 + micros // 1000 - age_ms)
    reply = http("GET", "/readyz")
    assert reply.status == status
    assert ("Retry-After" in reply.headers) is (status == 503)
    assert ("no remoting worker" in str(reply.json)) is (status == 503)


def test_readiness_shows_how_far_workers_are_behind_the_stream(
    http: Http, redis: redis_py.Redis, keys: Keys
) -> None:
    """They stay in service: all of them have the same entries to apply."""
    seconds, micros = redis.time()
    now_ms = seconds * 1000 + micros // 1000
    redis.hset(keys.events_meta, mapping={"behind_ms": 240_000, "behind_at_ms": now_ms})
    assert http.ok("GET", "/readyz")["behindMillis"] == 240_000
    (finding,) = http.ok("GET", "/v1/doctor")["findings"]
    assert (finding["check"], finding["severity"]) == ("follower-late", "error")
    assert "240 s behind" in finding["what"]
    redis.hset(keys.events_meta, "behind_at_ms", now_ms - 6_000)
    assert http.ok("GET", "/readyz")["behindMillis"] is None


def test_a_hold_is_shown_while_it_lasts(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    until = (redis.time()[0] + 60) * 1000
    redis.hset(keys.events_meta, "hold_until_ms", until)
    assert http.ok("GET", "/readyz")["holdUntilMillis"] == until
    redis.hset(keys.events_meta, "hold_until_ms", until - 120_000)
    assert http.ok("GET", "/readyz")["holdUntilMillis"] is None


def test_an_operator_ends_a_hold(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    assert http.ok("DELETE", "/v1/hold") == {"eventId": None}
    until = (redis.time()[0] + 60) * 1000
    redis.hset(keys.events_meta, mapping={"hold_from_ms": until - 90_000, "hold_until_ms": until})
    event_id = http.ok("DELETE", "/v1/hold")["eventId"]
    assert http.ok("GET", "/readyz")["holdUntilMillis"] is None
    (event,) = http.ok("GET", "/v1/events?limit=1000")["events"][-1:]
    assert (event["id"], event["fields"]["cause"]) == (event_id, "released")


def test_not_ready_without_the_store(storeless: Http) -> None:
    assert storeless.refused("GET", "/readyz") == (503, "store-unavailable", None)


def test_a_silent_store_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = Options(redis_url=f"redis://127.0.0.1:{silent.getsockname()[1]}")
        http = Http(create_app(options).test_client())
        start = time.monotonic()
        assert http.refused("GET", "/readyz") == (503, "store-unavailable", None)
        assert time.monotonic() - start < 2


def test_no_application_without_the_address_of_a_store() -> None:
    with pytest.raises(ValueError, match="not one of redis://"):
        create_app(Options())


def test_a_clock_that_went_back_is_shown(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    assert http.ok("GET", "/readyz")["clockBackMillis"] is None
    redis.hset(keys.events_meta, mapping={"back_ms": 60_000, "back_at_ms": 1_795_255_839_049})
    ready = http.ok("GET", "/readyz")
    assert (ready["clockBackMillis"], ready["clockBackAtMillis"]) == (60_000, 1_795_255_839_049)
