"""A scrape over a store in which another hand has written: each key in turn, by values that no server writes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis as redis_py

from metrics import store
from mqnamesrv.store import EmbeddedStore
from mqpipeline.reports.catalogue import SLO
from mqpipeline.serving.publish import publish
from mqpipeline.serving.results import Results
from registry import topic_counts
from registry.doctor import findings
from registry.drivers import run
from registry.growth.limits import DEFAULT_LIMITS
from registry.keys import Keys
from registry.task_times import note_success
from tests.api.http import Http, a_broker
from tests.api.test_metrics import CHECKED, COUNTS, DAY_MS, budget, scrape
from tests.mqpipeline.serving.example import AS_OF, results

VALUES = (
    *(b"", b"x", b"9" * 400, b"\xff\xfe", b"\xed\xa0\x80", b"null", b"[" * 3000),
    b'{"id":"0-0","seq":-9,"at_ms":1e300,"until_ms":1e300}',
)


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CACHED_S", 0.0)
    monkeypatch.setattr(store, "CACHED_TIMES", 0)


def damages(redis: Any, key: str) -> Iterator[tuple[Any, ...]]:
    """Yield commands that damage this key, which `redis` has."""
    yield "SET", key, "x"
    kind = redis.type(key)
    for value in VALUES:
        if kind == "hash":
            for field in (*redis.hkeys(key), value):
                yield "HSET", key, field, value
        elif kind == "set":
            yield "SADD", key, value
        elif kind == "zset":
            yield "ZADD", key, "-inf", value
        elif kind == "string":
            yield "SET", key, value


@pytest.mark.timeout(240)  # some hundred scrapes
def test_no_damage_ends_a_scrape(http: Http, store: EmbeddedStore, redis: redis_py.Redis, keys: Keys) -> None:
    publish(
        redis,
        "default",
        CHECKED,
        Results(AS_OF, {**results().tables, SLO.table.name: (budget("c1", DAY_MS, 0.5),)}),
    )
    redis.hset(keys.report("flap:values"), "slot:c1:b1:0", '{"flapping": true}')
    redis.hset(keys.events_consumers, "pipeline:main", json.dumps({"id": "0-0", "at_ms": 1}))
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("PUT", "/v1/brokers/broker-a/drain", {"owner": "ops", "reason": "disk"})
    http.ok("PUT", "/v1/kv/ns/key", {"value": "v"})
    run(note_success(keys, "expire_brokers", 1), redis)
    run(topic_counts.store(keys, COUNTS), redis)
    run(findings.count(keys, DEFAULT_LIMITS), redis)
    scrapes = 0
    with redis_py.Redis.from_url(store.url) as raw:
        for key in map(str, redis.keys("*")):
            saved = raw.dump(key)
            for damage in damages(redis, key):
                raw.execute_command(*damage)
                assert "rocketmq_nameserver_up" in scrape(http), damage
                raw.restore(key, 0, saved, replace=True)
                scrapes += 1
    assert scrapes > 500
