"""Findings of the name server about itself, as JSON."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest
import redis as redis_py

from api import doctor
from api.app import create_app
from mqnamesrv.store import EmbeddedStore
from registry.doctor.findings import examine
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.store.connect import connect
from testbed.eventually import PATIENCE_S
from tests.api.http import Http, a_broker


@pytest.fixture
def many(http: Http, monkeypatch: pytest.MonkeyPatch) -> Http:
    """Return a name server of one broker, which counts as many."""
    monkeypatch.setattr(doctor, "FEW", 0)
    monkeypatch.setattr(doctor, "KEPT_FOR_EACH_S", 60.0)
    http.ok("POST", "/v1/brokers", a_broker())
    return http


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


def examinations(redis: redis_py.Redis) -> int:
    """Return how often Redis was asked how full the namespace is, as each examination does."""
    return int(redis.info("commandstats")["cmdstat_scard"]["calls"])


def test_of_many_brokers_an_examination_is_answered_for_a_while(many: Http, redis: redis_py.Redis) -> None:
    first = many.ok("GET", "/v1/doctor")
    many.ok("POST", "/v1/brokers", a_broker(brokerName="slave", brokerAddr="127.0.1.8:1", brokerId=1))
    asked = examinations(redis)
    assert many.ok("GET", "/v1/doctor") == first
    assert examinations(redis) == asked


def test_callers_of_one_moment_have_one_examination(many: Http, redis: redis_py.Redis) -> None:
    many.ok("GET", "/healthz")
    redis.config_resetstat()

    def ask(_: int) -> int:
        reply = many.client.application.test_client().get("/v1/doctor")
        return int(reply.get_json()["nowMillis"])

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert examinations(redis) == 3  # of brokers, topics and KV namespaces


def test_while_a_new_one_is_made_the_last_is_answered(many: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads waited for it, and with them every other request."""
    first, now_s = many.ok("GET", "/v1/doctor"), monotonic()
    begun, goes_on = Event(), Event()

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert goes_on.wait(PATIENCE_S)
        return examine(*arguments)

    monkeypatch.setattr(doctor, "examine", slow)
    monkeypatch.setattr(doctor, "monotonic", lambda: now_s + 61)
    many.ok("POST", "/v1/brokers", a_broker(brokerName="slave", brokerAddr="127.0.1.8:1", brokerId=1))
    with ThreadPoolExecutor(1) as pool:
        app = many.client.application
        new = pool.submit(lambda: app.test_client().get("/v1/doctor").get_json())
        assert begun.wait(PATIENCE_S)
        assert many.ok("GET", "/v1/doctor") == first
        goes_on.set()
        assert [finding["subjects"] for finding in new.result()["findings"]] == [["slave"]]
    assert many.ok("GET", "/v1/doctor") == new.result()


def test_that_the_store_is_away_is_said_at_once(many: Http, tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path, keep=False)
    store.start()
    with connect(store.url) as client:
        http = Http(create_app(Options(), redis=client).test_client())
        http.ok("POST", "/v1/brokers", a_broker())
        http.ok("GET", "/v1/doctor")
        store.stop()
        assert http.refused("GET", "/v1/doctor")[:2] == (503, "store-unavailable")


@pytest.mark.parametrize(("size", "seconds"), [(0, 0), (100, 0), (1_000, 2), (3_000, 6)])
def test_how_long_one_is_answered(size: int, seconds: float) -> None:
    assert doctor.kept_s(size) == pytest.approx(seconds)
