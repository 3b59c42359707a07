"""Drains by HTTP."""

from typing import Any

import pytest
import redis as redis_py

from registry.keys import Keys
from tests.api.http import MASTER, Http, a_broker

DRAIN = "/v1/brokers/broker-a/drain"
WANTED = {"owner": "alice", "reason": "kernel upgrade"}


def drain_set(http: Http, name: str = "broker-a", **members: object) -> dict[str, Any]:
    """Register a broker and drain it; return its drain as lists show it."""
    http.ok("POST", "/v1/brokers", a_broker(brokerName=name))
    http.ok("PUT", f"/v1/brokers/{name}/drain", WANTED | members)
    drain: dict[str, Any] = http.ok("GET", f"/v1/brokers/{name}/drain")
    return drain | {"damaged": False}


def over(redis: redis_py.Redis, keys: Keys, name: str = "broker-a") -> None:
    """End a drain just now, which no tick has recorded."""
    redis.zadd(keys.drain_ends, {name: later(redis, -1_000)})


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
    drain = http.ok("GET", DRAIN)
    assert 0 <= int(done["eventId"].partition("-")[0]) - drain.pop("sinceMillis") < 1000
    assert drain == WANTED | {"untilMillis": None}
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
    assert http.ok("GET", DRAIN).items() >= wanted.items()


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


def test_all_drains(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    """Of a broker that is gone too, and one that is damaged, but none whose time is over."""
    shown = {name: drain_set(http, name) for name in ("broker-a", "broker-b", "broker-c", "broker-d")}
    http.ok("DELETE", f"/v1/brokers/broker-b?cluster=c1&brokerAddr={MASTER}")
    redis.hset(keys.drains, "broker-c", "notjson")
    over(redis, keys, "broker-d")
    damaged = dict.fromkeys(shown["broker-c"]) | {"damaged": True}
    reply = http.ok("GET", "/v1/drains")
    assert reply["next"] is None
    assert reply["drains"] == [
        shown["broker-a"] | {"brokerName": "broker-a", "cluster": "c1", "topicCount": 2},
        shown["broker-b"] | {"brokerName": "broker-b", "cluster": None, "topicCount": 0},
        damaged | {"brokerName": "broker-c", "cluster": "c1", "topicCount": 2},
    ]


def test_a_broker_shows_its_drain(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    drain = drain_set(http, untilMillis=later(redis))
    http.ok("POST", "/v1/brokers", a_broker(brokerName="broker-b"))
    drains = {broker["brokerName"]: broker["drain"] for broker in http.ok("GET", "/v1/brokers")["brokers"]}
    assert drains == {"broker-a": drain, "broker-b": None}
    assert http.ok("GET", "/v1/brokers/broker-a")["drain"] == drain
    redis.hset(keys.drains, "broker-a", "notjson")
    assert http.ok("GET", "/v1/brokers/broker-a")["drain"]["damaged"] is True
    over(redis, keys)
    assert http.ok("GET", "/v1/brokers/broker-a")["drain"] is None


def test_permissions_given_to_a_drained_broker_end_no_drain(http: Http) -> None:
    """The answers name it; what was given is stored, and shows when the drain ends."""
    drain = drain_set(http)
    permission = "/v1/brokers/broker-a/write-permission"
    assert http.ok("POST", permission, {"writable": True})["drain"] == drain
    numbers = {"brokerName": "broker-a", "perm": 2}
    http.ok("POST", "/v1/brokers", a_broker(brokerName="broker-b"))
    done = http.ok(
        "PUT", "/v1/topics/TopicB", {"queueDatas": [numbers, numbers | {"brokerName": "broker-b"}]}
    )
    assert done["drainedBrokers"] == ["broker-a"]
    assert perms(http) == {"TopicA": 4, "TopicB": 0}
    assert http.ok("GET", "/v1/brokers/broker-a")["drain"] == drain
    http.ok("DELETE", DRAIN)
    assert perms(http) == {"TopicA": 6, "TopicB": 2}
    assert http.ok("POST", permission, {"writable": False})["drain"] is None
