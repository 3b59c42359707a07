"""What the walks over the tables did, as JSON."""

from math import inf

import redis as redis_py

from registry.drivers import run
from registry.keys import Keys
from registry.plans import Origin
from registry.repair.walk import Walk
from tests.api.http import Http

NONE = dict.fromkeys(("brokers", "members", "topics", "mappings", "keys"), 0)


def test_nothing_before_the_first_walk(http: Http) -> None:
    assert http.ok("GET", "/v1/repairs") == {
        "repairedRows": NONE,
        "repairedMillis": None,
        "walkedMillis": None,
        "walkTookMillis": None,
        "walkingMillis": None,
        "evictingPolicy": None,
    }


def test_repairs_are_counted(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    redis.sadd(keys.topics, "never-was")
    redis.sadd(keys.brokers, "never-was")
    run(Walk(keys, Origin("op", "job:repair"), "w", timeout_ms=1000, rows_per_s=inf).run(), redis)
    repairs = http.ok("GET", "/v1/repairs")
    assert repairs["repairedRows"] == NONE | {"topics": 1, "brokers": 1}
    assert repairs["repairedMillis"] == repairs["walkedMillis"] > 0
    assert repairs["walkTookMillis"] >= 0
