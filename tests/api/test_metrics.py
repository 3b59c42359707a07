"""What Prometheus scrapes."""

import json
import logging
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
import redis as redis_py
from prometheus_client.parser import text_string_to_metric_families

from metrics import store
from metrics.catalogue import CATALOGUE, PREFIX, Scope
from mqpipeline.reports.catalogue import AVAILABILITY, SLO
from mqpipeline.serving.publish import publish
from mqpipeline.serving.results import Results
from registry.keys import Keys
from tests.api.http import Http
from tests.mqpipeline.serving.example import AS_OF, RUN, availability, results, row

DAY_MS = 86_400_000


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CACHED_S", 0.0)


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
    publish(redis, "default", RUN, Results(AS_OF, tables))
    redis.hset(keys.events_consumers, "pipeline:main", json.dumps({"id": "0-0", "at_ms": 1}))
    assert scrape(http).keys() == {metric.name for metric in CATALOGUE if Scope.STORE in metric.scopes}


def test_nothing_where_no_pipeline_ran(http: Http) -> None:
    assert scrape(http) == {}


def test_the_store_is_away(storeless: Http) -> None:
    assert scrape(storeless) == {}


def test_a_landing_that_has_all(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    redis.xadd(keys.events, {"kind": "x"}, "5000-1")
    redis.hset(keys.events_consumers, "pipeline:main", json.dumps({"id": "9999999999999-1", "at_ms": 7_500}))
    found = scrape(http)
    assert found["pipeline_lag_seconds"] == {("landing:main",): 0.0}
    assert found["pipeline_last_success_timestamp_seconds"] == {("landing:main",): 7.5}


def test_a_landing_is_as_late_as_the_oldest_entry_that_it_has_not(
    http: Http, redis: redis_py.Redis, keys: Keys
) -> None:
    redis.delete(keys.events)
    now = seconds_now(redis)
    for age_s in (500, 60, 20):
        redis.xadd(keys.events, {"kind": "x"}, f"{int((now - age_s) * 1000)}-1")
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
    assert scrape(http) == {}


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
        assert scrape(http) == {}
        assert scrape(http) == {}
    assert [record.name for record in caplog.records] == ["metrics.store"]


def test_a_key_of_another_type_is_left_out_and_said(
    http: Http, redis: redis_py.Redis, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    redis.delete(keys.events_consumers)
    redis.set(keys.events_consumers, "x")
    assert scrape(http) == {}
    assert "run the pipeline again" in caplog.text
