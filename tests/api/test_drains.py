"""Drains by HTTP."""

from typing import Any

import pytest
import redis as redis_py

from registry.keys import Keys
from tests.api.http import MASTER, Http, a_broker

DRAIN = "/v1/brokers/broker-a/drain"
WANTED = {"owner": "alice", "reason": "kernel upgrade"}


def perms(http: Http) -> dict[str, int]:
    """Return the permissions by topic, as routes show them."""
    return {
        topic: http.ok("GET", f"/v1/routes/{topic}")["queueDatas"][0]["perm"]
        for topic in ("TopicA", "TopicB")
    }


def later(redis: redis_py.Redis, by_ms: int = 60_000) -> int:
    seconds, _ = redis.time()
    return seconds * 1000 + by_ms


def test_a_drain_is_set_shown_and_ended(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    done = http.ok("PUT", DRAIN, WANTED)
    assert (bool(done["eventId"]), done["topicCount"]) == (True, 2)
    assert http.ok("GET", DRAIN) == WANTED | {"untilMillis": None}
    assert perms(http) == {"TopicA": 4, "TopicB": 4}
    assert http.ok("PUT", DRAIN, WANTED) == {"eventId": None, "topicCount": 2}
    assert http.ok("DELETE", DRAIN)["eventId"]
    assert http.refused("GET", DRAIN) == (404, "drain-not-found", None)
    assert perms(http) == {"TopicA": 6, "TopicB": 4}
    assert http.ok("DELETE", DRAIN) == {"eventId": None, "topicCount": 2}


def test_its_end_is_shown(http: Http, redis: redis_py.Redis) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    wanted = WANTED | {"untilMillis": later(redis)}
    http.ok("PUT", DRAIN, wanted)
    assert http.ok("GET", DRAIN) == wanted


def test_the_event_names_the_actor(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    event_id = http.ok("PUT", DRAIN, WANTED)["eventId"]
    entries: Any = redis.xrange(keys.events, event_id, event_id)
    assert entries[0][1]["actor"].startswith("http:")
    assert entries[0][1]["kind"] == "drain_changed"


def test_it_outlives_the_broker(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("PUT", DRAIN, WANTED)
    http.ok("DELETE", f"/v1/brokers/broker-a?cluster=c1&brokerAddr={MASTER}")
    assert http.ok("GET", DRAIN)["owner"] == "alice"
    http.ok("POST", "/v1/brokers", a_broker())
    assert perms(http) == {"TopicA": 4, "TopicB": 4}


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_an_unknown_broker(http: Http, method: str) -> None:
    body = WANTED if method == "PUT" else None
    assert http.refused(method, DRAIN, body) == (404, "broker-not-found", None)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        pytest.param("owner", "", id="no owner"),
        pytest.param("owner", "a" * 256, id="a long name"),
        pytest.param("owner", None, id="no owner"),
        pytest.param("reason", "", id="no reason"),
        pytest.param("reason", "two\nlines", id="two lines"),
        pytest.param("reason", "a" * 1001, id="a long reason"),
        pytest.param("untilMillis", 1000, id="in the past"),
        pytest.param("untilMillis", "1000", id="text"),
    ],
)
def test_members_that_make_no_sense(http: Http, member: str, value: object) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    assert http.refused("PUT", DRAIN, WANTED | {member: value}) == (422, "invalid-field", member)


def test_a_drain_that_is_none_is_no_defect(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    redis.hset(keys.drains, "broker-a", "notjson")
    assert http.refused("GET", DRAIN) == (503, "value-damaged", None)
    assert http.ok("DELETE", DRAIN)["eventId"]
    assert http.refused("GET", DRAIN) == (404, "drain-not-found", None)
