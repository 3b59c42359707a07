"""What Prometheus scrapes."""

import json
import logging
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
import redis as redis_py
from prometheus_client.parser import text_string_to_metric_families

from api.app import create_app
from metrics import brokers, store
from metrics.catalogue import AVAILABILITY as AVAILABILITY_RATIO
from metrics.catalogue import (
    BROKER_UP,
    BUILD_INFO,
    CATALOGUE,
    ERROR_BUDGET_REMAINING,
    FOLD_MISMATCHES,
    NAMESERVER_UP,
    PIPELINE_LAG,
    PIPELINE_LAST_SUCCESS,
)
from metrics.metric import PREFIX, Scope
from mqpipeline.reports.catalogue import AVAILABILITY, SLO
from mqpipeline.serving.publish import publish
from mqpipeline.serving.results import Results
from registry import topic_counts
from registry.doctor import findings
from registry.drivers import run
from registry.errors import StoreUnavailable
from registry.gone_members import MemberName, note
from registry.growth.limits import DEFAULT_LIMITS
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.task_times import note_success
from registry.topic_counts import ClusterCounts, TopicCounts
from tests.api.http import MASTER, SLAVE, Http, a_broker
from tests.mqpipeline.serving.example import AS_OF, RUN, availability, results, row

DAY_MS = 86_400_000
CHECKED = msgspec.structs.replace(RUN, round_ms=AS_OF, proves=True, members_differing=2, pairs_differing=3)
"""A run that has compared a checkpoint."""
COUNTS = TopicCounts(1, {"c1": ClusterCounts(3, 24, 16, 1), "c2": ClusterCounts(1, 8, 8, 0)}, ("broker-a",))


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CACHED_S", 0.0)
    monkeypatch.setattr(store, "CACHED_TIMES", 0)


PIPELINE = {
    PIPELINE_LAG.name,
    PIPELINE_LAST_SUCCESS.name,
    AVAILABILITY_RATIO.name,
    ERROR_BUDGET_REMAINING.name,
}


def of_pipeline(http: Http) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the series of the pipeline's metrics."""
    return {name: series for name, series in scrape(http).items() if name in PIPELINE}


def scrape(http: Http) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the series of each metric, by the values of its labels but `ns`."""
    reply = http.client.get("/metrics")
    assert reply.status_code == 200
    assert reply.content_type == "text/plain; version=0.0.4; charset=utf-8"
    labels = {metric.full_name: metric.label_names for metric in CATALOGUE}
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(reply.text):
        series = found.setdefault(family.name.removeprefix(PREFIX), {})
        for sample in family.samples:
            assert sample.labels.keys() == {"ns", *labels[family.name]}
            assert sample.labels["ns"] == "default"
            key = tuple(sample.labels[label] for label in labels[family.name])
            assert key not in series, "twice: Prometheus takes nothing of such a scrape"
            series[key] = sample.value
    return found


def seconds_now(redis: redis_py.Redis) -> float:
    seconds, micros = redis.time()
    return seconds + micros / 1e6


def budget(cluster: str, known_ms: float, remaining: float | None) -> Mapping[str, Any]:
    return row(
        SLO.table, f"cluster:{cluster}", "30d", slo=0.999, budget_ms=0.001 * known_ms, remaining=remaining
    )


def of_clusters(number: int) -> Results:
    """Return results of so many clusters, each of which is a thousandth less available than the one before."""
    rows = [
        availability(f"cluster:c{n:03}", (1000 - n, n, 0, 0), 0, window=window)
        for n in range(number)
        for window in ("1h", "24h")
    ]
    return Results(AS_OF, {AVAILABILITY.table.name: tuple(rows)})


def test_every_metric_of_the_store_and_no_other(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    tables = {**results().tables, SLO.table.name: (budget("c1", DAY_MS, 0.5),)}
    publish(redis, "default", CHECKED, Results(AS_OF, tables))
    run(topic_counts.store(keys, COUNTS), redis)
    run(findings.count(keys, DEFAULT_LIMITS), redis)
    redis.hset(keys.report("flap:values"), "slot:c1:b1:0", '{"flapping": true}')
    redis.hset(keys.events_consumers, "pipeline:main", json.dumps({"id": "0-0", "at_ms": 1}))
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("PUT", "/v1/kv/ns/key", {"value": "v"})
    http.ok("PUT", "/v1/drift/d", {"nameServers": ["h1:9876", "h2:9876"], "validForSeconds": 60})
    run(note_success(keys, "expire_brokers", 1), redis)
    assert scrape(http).keys() == {metric.name for metric in CATALOGUE if Scope.STORE in metric.scopes}


def test_nothing_of_the_pipeline_where_none_ran(http: Http) -> None:
    assert of_pipeline(http) == {}


def test_brokers(http: Http, redis: redis_py.Redis) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", a_broker(brokerAddr=SLAVE, brokerId=1, topics=[]))
    http.ok("POST", "/v1/brokers", a_broker(brokerName="alone", brokerAddr="127.0.1.3:10911", brokerId=1))
    http.ok("PUT", "/v1/brokers/broker-a/drain", {"owner": "ops", "reason": "disk"})
    found = scrape(http)
    assert found["clusters"] == {(): 1}
    assert found["active_brokers"] == {("c1", "master"): 1, ("c1", "slave"): 2}
    assert found["brokers_without_master"] == {("c1",): 1}
    assert found["drained_brokers"] == {("c1",): 1}
    assert found["broker_write_wiped"] == {("c1", "broker-a"): 1, ("c1", "alone"): 0}
    assert found["broker_topics"]["c1", "broker-a"] == 2
    assert found["broker_up"].keys() == {
        ("c1", "broker-a", "0"),
        ("c1", "broker-a", "1"),
        ("c1", "alone", "1"),
    }
    assert set(found["broker_up"].values()) == {1}
    assert max(found["broker_heartbeat_age_seconds"].values()) < 60
    assert (found["expiry_lag_seconds"], found["expiry_held"]) == ({(): 0}, {(): 0})


def test_drained_brokers_are_those_of_the_list(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    """One whose time is over counts no more, before that is recorded too; one that is gone or damaged does."""
    for cluster, name in (("c1", "a"), ("c1", "b"), ("c1", "c"), ("c2", "d"), ("c2", "gone")):
        http.ok("POST", "/v1/brokers", a_broker(cluster=cluster, brokerName=name))
        http.ok("PUT", f"/v1/brokers/{name}/drain", {"owner": "ops", "reason": "disk"})
    http.ok("DELETE", f"/v1/brokers/gone?cluster=c2&brokerAddr={MASTER}")
    redis.hset(keys.drains, "b", "notjson")
    redis.zadd(keys.drain_ends, dict.fromkeys("cd", (seconds_now(redis) - 1) * 1000))
    found = scrape(http)
    assert found["drained_brokers"] == {("c1",): 2, ("c2",): 0, ("",): 1}
    assert found["broker_write_wiped"] == {("c1", "a"): 1, ("c1", "b"): 1, ("c1", "c"): 0, ("c2", "d"): 0}
    drains = http.ok("GET", "/v1/drains")["drains"]
    assert [drain["brokerName"] for drain in drains] == ["a", "b", "gone"]
    assert sum(found["drained_brokers"].values()) == len(drains)


def test_a_lease_that_is_over(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("POST", "/v1/brokers", a_broker(heartbeatTimeoutMillis=120_000))
    (member,) = map(str, redis.zrange(keys.leases, 0, -1))
    redis.zadd(keys.leases, {member: int((seconds_now(redis) - 20) * 1000)})
    found = scrape(http)
    assert found["broker_up"] == {("c1", "broker-a", "0"): 0}
    assert found["active_brokers"]["c1", "master"] == 0
    assert 19 < found["expiry_lag_seconds"][()] < 40


@pytest.mark.parametrize("bound", ["BROKERS_MOST", "MEMBERS_MOST"])
def test_many_brokers_have_no_series_of_their_own(
    http: Http, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(brokers, bound, 1)
    for number in range(2):
        http.ok(
            "POST", "/v1/brokers", a_broker(brokerName=f"b{number}", brokerAddr=f"127.0.1.{number}:10911")
        )
    found = scrape(http)
    assert found["active_brokers"]["c1", "master"] == 2
    assert not {"broker_up", "broker_topics"} & found.keys()


def test_limits_of_0(redis: redis_py.Redis) -> None:
    options = Options(events_max_bytes=0, max_brokers=0, max_topics=0, max_kv_namespaces=0)
    used = scrape(Http(create_app(options, redis=redis).test_client()))["limit_used_ratio"]
    assert {labels for labels, ratio in used.items() if not ratio} == {
        ("maxBrokers",),
        ("maxTopics",),
        ("maxKvNamespaces",),
        ("eventsMaxBytes",),
    }


def test_the_stream_and_its_consumers(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    seq = int(redis.hget(keys.events_meta, "seq") or 0)
    consumer = {"id": "0-0", "seq": seq - 1, "at_ms": int((seconds_now(redis) - 90) * 1000)}
    redis.hset(keys.events_consumers, "mine", json.dumps(consumer))
    found = scrape(http)
    assert found["events_sequence"] == {(): seq}
    assert found["events_stream_length"] == {(): redis.xlen(keys.events)}
    assert found["events_stream_bytes"][()] > 100
    assert found["events_consumer_lag"] == {("mine",): 1}
    assert 85 < found["events_consumer_age_seconds"]["mine",] < 120
    assert found["limit_used_ratio"]["maxBrokers",] == 1 / Options().max_brokers


def test_topics_and_queues_as_they_were_counted(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    assert not {"topics", "queues", "topics_without_writable_master"} & scrape(http).keys()
    run(topic_counts.store(keys, COUNTS), redis)
    found = scrape(http)
    assert found["topics"] == {("c1",): 3, ("c2",): 1}
    assert found["queues"] == {("c1", "read"): 24, ("c2", "read"): 8, ("c1", "write"): 16, ("c2", "write"): 8}
    assert found["topics_without_writable_master"] == {("c1",): 1, ("c2",): 0}
    assert found["broker_write_wiped"] == {("c1", "broker-a"): 1}


def test_findings_as_they_were_counted(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("POST", "/v1/brokers", a_broker(brokerName="alone", brokerId=1))
    assert "doctor_findings" not in scrape(http)
    run(findings.count(keys, DEFAULT_LIMITS), redis)
    counts = scrape(http)["doctor_findings"]
    assert counts == {(name,): name == "broker-without-master" for name in findings.FINDINGS}


def test_counts_that_are_damaged_are_none(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    """Until they are counted again, within half a minute."""
    http.ok("POST", "/v1/brokers", a_broker())
    redis.set(keys.topic_counts, '{"at_ms": 1}')
    found = scrape(http)
    assert "topics" not in found
    assert found["broker_write_wiped"] == {("c1", "broker-a"): 0}


@pytest.mark.parametrize(
    ("proves", "members", "pairs", "differ"),
    [(True, 2, 3, {(): 5}), (True, 0, 0, {(): 0}), (False, 2, 3, {(): 0}), (None, None, None, {})],
)
def test_a_checkpoint_that_differs_from_the_tables_of_the_pipeline(
    http: Http,
    redis: redis_py.Redis,
    proves: bool | None,
    members: int | None,
    pairs: int | None,
    differ: Mapping[tuple[str, ...], float],
) -> None:
    """It proves no defect where entries were missing before it."""
    checked = msgspec.structs.replace(RUN, proves=proves, members_differing=members, pairs_differing=pairs)
    publish(redis, "default", checked, results())
    assert scrape(http).get(FOLD_MISMATCHES.name, {}) == differ


def test_jobs(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    run(note_success(keys, "trim_events", 10), redis)
    redis.hset(keys.tasks, mapping={"expire_brokers": "damaged", "no_such_job": "1,1"})
    found = scrape(http)
    assert found["task_interval_seconds"] == {("trim_events",): 10}
    assert found["task_last_success_timestamp_seconds"]["trim_events",] == pytest.approx(
        seconds_now(redis), abs=30
    )


def test_what_takes_long_to_read_is_read_less_often(
    http: Http, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "CACHED_TIMES", 20)
    times = iter([100.0, 101.0, 101.0, 119.9, 121.0, 121.5, 121.5])
    monkeypatch.setattr(store, "monotonic", lambda: next(times))
    http.ok("POST", "/v1/brokers", a_broker())
    assert scrape(http)["active_brokers"]["c1", "master"] == 1
    http.ok("POST", "/v1/brokers", a_broker(brokerName="b2", brokerAddr=SLAVE))
    assert scrape(http)["active_brokers"]["c1", "master"] == 1
    assert scrape(http)["active_brokers"]["c1", "master"] == 2


def test_the_store_is_away(storeless: Http) -> None:
    found = scrape(storeless)
    assert found.keys() == {BUILD_INFO.name, NAMESERVER_UP.name}
    assert found[NAMESERVER_UP.name] == {(): 0}


def test_a_store_that_does_not_answer_is_asked_once_a_scrape_and_again_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However long that took: each request waits for its time-out."""
    now, asked = [100.0], list[object]()

    def away(plan: object) -> Any:
        asked.append(plan)
        now[0] += 10
        raise StoreUnavailable("no answer")

    monkeypatch.setattr(store, "CACHED_S", 5.0)
    monkeypatch.setattr(store, "CACHED_TIMES", 20)
    monkeypatch.setattr(store, "monotonic", lambda: now[0])
    read = store.StoreMetrics(Keys(), Options(), away)
    read.text()
    for at_s, times in ((114.9, 1), (115.1, 2)):
        now[0] = at_s
        read.text()
        assert len(asked) == times


def test_members_that_left_without_unregistering(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    left = MemberName("c9", "b9", "1")
    run(note(keys, {left: redis.time()[0] * 1000}), redis)
    assert scrape(http)[BROKER_UP.name] == {("c1", "broker-a", "0"): 1, ("c9", "b9", "1"): 0}


def test_ready_as_readyz_says(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    assert scrape(http)[NAMESERVER_UP.name] == {(): 1}
    redis.hset(keys.events_meta, "tick_ms", 1)
    assert http("GET", "/readyz").status == 503
    assert scrape(http)[NAMESERVER_UP.name] == {(): 0}


def test_a_landing_that_has_all(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    redis.xadd(keys.events, {"kind": "x"}, "5000-1")
    redis.hset(keys.events_consumers, "pipeline:main", json.dumps({"id": "9999999999999-1", "at_ms": 7_500}))
    found = scrape(http)
    assert found["pipeline_lag_seconds"] == {("landing:main",): 0.0}
    assert found["pipeline_last_success_timestamp_seconds"] == {("landing:main",): 7.5}


def test_a_landing_is_as_late_as_the_oldest_entry_that_it_has_not(
    http: Http, redis: redis_py.Redis, keys: Keys
) -> None:
    now = seconds_now(redis)
    with redis.pipeline() as pipe:  # at one moment: a server has entries of its own for a stream that is gone
        pipe.delete(keys.events)
        for age_s in (500, 60, 20):
            pipe.xadd(keys.events, {"kind": "x"}, f"{int((now - age_s) * 1000)}-1")
        pipe.execute()
    reached = f"{int((now - 500) * 1000)}-1"
    redis.hset(keys.events_consumers, "pipeline:main", json.dumps({"id": reached, "at_ms": 1}))
    redis.hset(keys.events_consumers, "audit", json.dumps({"id": "0-0", "at_ms": 1}))
    (lag,) = scrape(http)["pipeline_lag_seconds"].values()
    assert 59 <= lag <= 75


def test_a_landing_whose_report_cannot_be_read(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    redis.hset(keys.events_consumers, mapping={"pipeline:bad": "{", "pipeline:main": '{"at_ms": 1}'})
    assert scrape(http)["pipeline_lag_seconds"].keys() == {("landing:main",)}


def test_reports(http: Http, redis: redis_py.Redis) -> None:
    publish(redis, "default", RUN, results())
    found = scrape(http)
    now = seconds_now(redis)
    assert found["availability_ratio"] == {("c1", "1h"): pytest.approx(0.903, abs=0.001)}
    assert found["pipeline_lag_seconds"]["reports",] == pytest.approx(now - AS_OF / 1000, abs=30)
    assert found["pipeline_last_success_timestamp_seconds"]["reports",] == pytest.approx(now, abs=30)


def test_a_later_run_is_noticed(http: Http, redis: redis_py.Redis) -> None:
    publish(redis, "default", RUN, of_clusters(1))
    assert scrape(http)["availability_ratio"].keys() == {("c000", "1h"), ("c000", "24h")}
    publish(redis, "default", msgspec.structs.replace(RUN, run="r2"), of_clusters(2))
    assert len(scrape(http)["availability_ratio"]) == 4
    redis.delete(*redis.scan_iter("*report:*"))
    assert "availability_ratio" not in scrape(http)


def test_the_number_of_a_run_may_come_again(http: Http, redis: redis_py.Redis) -> None:
    """As when a warehouse was deleted, or there are two."""
    publish(redis, "default", RUN, of_clusters(1))
    assert len(scrape(http)["availability_ratio"]) == 2
    publish(redis, "default", RUN, of_clusters(3))
    assert len(scrape(http)["availability_ratio"]) == 6


def test_reports_of_an_older_pipeline(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    publish(redis, "default", RUN, results())
    redis.hdel(keys.report("meta"), "published_ms")
    assert "pipeline_last_success_timestamp_seconds" not in scrape(http)


def test_many_clusters_are_one_series(http: Http, redis: redis_py.Redis) -> None:
    publish(redis, "default", RUN, of_clusters(60))
    found = scrape(http)["availability_ratio"]
    assert len(found) == 2 * 51
    assert found["other", "24h"] == 0.941


def test_a_budget_counts_from_a_day_on(http: Http, redis: redis_py.Redis) -> None:
    rows = budget("young", DAY_MS - 1000, -50.0), budget("old", DAY_MS, -0.5), budget("idle", DAY_MS, None)
    publish(redis, "default", RUN, Results(AS_OF, {SLO.table.name: rows}))
    assert scrape(http)["error_budget_remaining_ratio"] == {("old",): -0.5}


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        pytest.param("slo", "cluster:c1", "{", id="text that is no JSON"),
        pytest.param("slo", "cluster:c1", '{"slo": "high"}', id="columns of other types"),
        pytest.param("meta", "as_of_ms", "soon", id="a time that is none"),
    ],
)
def test_what_no_run_wrote_is_left_out_and_said(
    http: Http,
    redis: redis_py.Redis,
    keys: Keys,
    caplog: pytest.LogCaptureFixture,
    name: str,
    field: str,
    value: str,
) -> None:
    publish(redis, "default", RUN, results())
    redis.hset(keys.report(name), field, value)
    with caplog.at_level(logging.WARNING):
        assert of_pipeline(http) == {}
        assert of_pipeline(http) == {}
    assert [record.name for record in caplog.records] == ["metrics.store"]


@pytest.mark.parametrize("field", ["seq", "inc"])
def test_a_number_that_no_float_holds_is_left_out_and_said(
    http: Http, redis: redis_py.Redis, keys: Keys, caplog: pytest.LogCaptureFixture, field: str
) -> None:
    redis.hset(keys.events_meta, field, "9" * 400)
    found = scrape(http)
    assert "clusters" in found
    assert "events_stream_length" not in found
    assert "metrics of events are left out" in caplog.text


def test_a_key_of_another_type_is_left_out_and_said(
    http: Http, redis: redis_py.Redis, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    redis.delete(keys.events_consumers)
    redis.set(keys.events_consumers, "x")
    found = scrape(http)
    assert "clusters" in found
    assert not {"events_sequence", "pipeline_lag_seconds"} & found.keys()
    assert "metrics of events are left out" in caplog.text


def test_a_name_of_another_hand_that_is_no_utf_8_blinds_no_scrape(
    http: Http, redis: redis_py.Redis, keys: Keys
) -> None:
    for name in ("plain", "\ud800"):
        redis.sadd(keys.kv_namespaces, name)
        redis.hset(keys.kv(name), "key", "value")
    assert scrape(http)["kv_keys"] == {("plain",): 1, ("\\ud800",): 1}
