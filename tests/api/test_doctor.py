"""Findings of the name server about itself, as JSON."""

import redis as redis_py

from registry.keys import Keys
from tests.api.http import Http, a_broker


def test_none(http: Http) -> None:
    reply = http.ok("GET", "/v1/doctor")
    assert reply.keys() == {"nowMillis", "findings"}
    assert reply["findings"] == []


def test_a_finding_says_four_things(http: Http, redis: redis_py.Redis) -> None:
    http.ok("POST", "/v1/brokers", a_broker(brokerName="b1", brokerId=1))
    reply = http.ok("GET", "/v1/doctor")
    assert 0 <= redis.time()[0] * 1000 - reply["nowMillis"] + 1000 < 60_000
    (finding,) = reply["findings"]
    assert all(finding.pop(said) for said in ("what", "why", "advice", "command"))
    assert finding == {"check": "broker-without-master", "severity": "error", "subjects": ["b1"], "count": 1}


def test_no_damage_hides_the_rest(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    """Each key in turn has another type; only without the clock of leases nothing can be said."""
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("PUT", "/v1/brokers/broker-a/drain", {"owner": "ops", "reason": "disk"})
    for key in (keys.tasks, keys.repair, keys.topic_counts, keys.events_consumers):
        redis.delete(key)
        redis.hset(key, "field", "x")
    unread = set()
    for key in map(str, redis.keys("*")):
        kind, name = redis.type(key), f"saved:{key}"
        redis.rename(key, name)
        if kind == "string":
            redis.sadd(key, "x")
        else:
            redis.set(key, "x")
        reply = http("GET", "/v1/doctor")
        assert reply.status == (503 if key == keys.events_meta else 200), key
        if reply.status == 200:
            unread |= {
                s for f in reply.json["findings"] if f["check"] == "store-unreadable" for s in f["subjects"]
            }
        redis.rename(name, key)
    assert unread >= {"names", "brokers", "drains", "jobs", "repairs", "reports of consumers"}
