"""The pipeline's last reports over HTTP, as the pipeline writes them."""

import json
from typing import Any

import msgspec
import pytest
import redis as redis_py

from api.report_views import VIEWS
from mqpipeline.serving.publish import publish
from registry.keys import Keys
from registry.reports import served
from tests.api.http import Http
from tests.mqpipeline.serving.example import AS_OF, RUN, W0, availability, results

PATHS = ["", *(f"/{report.name}" for report in VIEWS)]


@pytest.fixture
def run(http: Http, redis: redis_py.Redis) -> Http:
    """Return a client of an application that serves the example's run."""
    publish(redis, "default", RUN, results())
    return http


def units(body: Any) -> list[str]:
    return [row["unit"] for row in body["rows"]]


@pytest.mark.parametrize("path", PATHS)
def test_no_run_yet(http: Http, path: str) -> None:
    reply = http("GET", f"/v1/reports{path}")
    assert (reply.status, reply.json["type"]) == (404, "urn:redis-namesrv:report-not-found")
    assert "a run of the pipeline makes one" in reply.json["detail"]


def test_the_run(run: Http, redis: redis_py.Redis) -> None:
    reply = run.ok("GET", "/v1/reports")
    seconds, _ = redis.time()
    age, published_ms = reply.pop("ageMillis"), reply.pop("publishedMillis")
    assert abs(seconds * 1000 - AS_OF - age) < 60_000
    assert abs(seconds * 1000 - published_ms) < 60_000
    assert reply == {
        "run": "r1",
        "asOfMillis": AS_OF,
        "tookMillis": 5300,
        "events": 14,
        "holes": 0,
        "phantoms": 0,
        "rejected": 0,
        "repeats": 0,
        "unknown": 0,
        "incomplete": 0,
        "waiting": 0,
        "incarnations": 0,
        "roundMillis": None,
        "proves": None,
        "membersDiffering": None,
        "pairsDiffering": None,
        "provisional": True,
        "leftOut": 0,
        "windows": {"availability": ["1h", "day:2026-01-01", "month:2026-01"], "churn": ["1h"]},
    }


def test_the_run_says_how_a_checkpoint_compares(http: Http, redis: redis_py.Redis) -> None:
    checked = msgspec.structs.replace(
        RUN, unknown=3, round_ms=AS_OF - 1, proves=True, members_differing=2, pairs_differing=0
    )
    publish(redis, "default", checked, results())
    reply = http.ok("GET", "/v1/reports")
    names = ("unknown", "roundMillis", "proves", "membersDiffering", "pairsDiffering")
    assert [reply[name] for name in names] == [3, AS_OF - 1, True, 2, 0]


def test_the_meta_data_of_an_older_pipeline(run: Http, redis: redis_py.Redis) -> None:
    redis.hdel(
        "ns:{default}:report:meta",
        "repeats",
        "unknown",
        "incomplete",
        "waiting",
        "incarnations",
        "published_ms",
    )
    assert run.ok("GET", "/v1/reports")["unknown"] is None


def test_availability(run: Http) -> None:
    reply = run.ok("GET", "/v1/reports/availability?window=1h")
    assert (reply["run"], reply["asOfMillis"], reply["next"]) == ("r1", AS_OF, None)
    assert units(reply) == [
        "broker:c1:c",
        "topic:T2",
        "broker:c1:a",
        "cluster:c1",
        "broker:c1:b",
        "topic:T1",
    ]
    assert reply["rows"][2] == {
        "unit": "broker:c1:a",
        "window": "1h",
        "fromMillis": W0,
        "toMillis": AS_OF,
        "provisional": True,
        "upMillis": 3_060_000,
        "downMillis": 540_000,
        "plannedMillis": 0,
        "unknownMillis": 0,
        "availability": 0.85,
        "weighted": None,
        "outages": 2,
        "mtbfMillis": 1_530_000.0,
        "mttrMillis": 270_000.0,
        "worst": {"5m": 0.0},
    }


@pytest.mark.parametrize(
    ("query", "listed"),
    [
        pytest.param("unit=broker", "broker:c1:c broker:c1:a broker:c1:b", id="a kind"),
        pytest.param("unit=broker:c1:b", "broker:c1:b", id="one"),
        pytest.param("unit=broker:c", "", id="not half a name"),
        pytest.param("unit=topic&sort=-unit", "topic:T2 topic:T1", id="by name, backwards"),
        pytest.param("unit=broker&sort=unit", "broker:c1:a broker:c1:b broker:c1:c", id="by name"),
        pytest.param(
            "unit=broker&sort=-outages", "broker:c1:a broker:c1:c broker:c1:b", id="from high to low"
        ),
        pytest.param("unit=broker&sort=mttrMillis", "broker:c1:a broker:c1:c broker:c1:b", id="nulls last"),
        pytest.param(
            "unit=broker&sort=-mttrMillis", "broker:c1:c broker:c1:a broker:c1:b", id="nulls last again"
        ),
        pytest.param("unit=broker&sort=weighted", "broker:c1:a broker:c1:b broker:c1:c", id="nulls by name"),
        pytest.param("unit=broker&limit=1&after=broker:c1:c", "broker:c1:a", id="a page"),
    ],
)
def test_filters_order_and_pages(run: Http, query: str, listed: str) -> None:
    assert units(run.ok("GET", f"/v1/reports/availability?window=1h&{query}")) == listed.split()


def test_pages_join_to_the_whole(run: Http) -> None:
    listed: list[str] = []
    after: str | None = ""
    while after is not None:
        page = run.ok("GET", f"/v1/reports/availability?window=1h&limit=4&after={after}")
        listed += units(page)
        after = page["next"]
    assert listed == units(run.ok("GET", "/v1/reports/availability?window=1h"))
    assert len(listed) == 6


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param("sort=colour", "sort", id="no such member"),
        pytest.param("sort=worst", "sort", id="no member to sort by"),
        pytest.param("sort=--unit", "sort", id="twice backwards"),
        pytest.param("unit=no-unit&sort=colour", "sort", id="no such member of no rows"),
        pytest.param("after=broker:c1:zz", "after", id="a unit that is not there"),
        pytest.param("limit=0", "limit", id="limit"),
        pytest.param("colour=red", "colour", id="no such parameter"),
    ],
)
def test_what_is_refused(run: Http, query: str, field: str) -> None:
    path = f"/v1/reports/availability?window=1h&{query}"
    assert run.refused("GET", path) == (422, "invalid-field", field)


@pytest.mark.parametrize("report", ["availability", "churn"])
@pytest.mark.parametrize("window", ["24h", "2h", "", "1h:x"])
def test_a_window_that_is_not_served(run: Http, report: str, window: str) -> None:
    reply = run("GET", f"/v1/reports/{report}?window={window}")
    assert (reply.status, reply.json["field"]) == (404, "window")
    assert "there are: 1h" in reply.json["detail"]


def test_a_calendar_window(run: Http) -> None:
    reply = run.ok("GET", "/v1/reports/availability?window=day:2026-01-01&unit=cluster")
    assert reply["rows"][0]["toMillis"] == W0 + 86_400_000


@pytest.mark.parametrize(
    ("report", "unit", "values"),
    [
        ("slo", "cluster:c1", {"remaining": -95.5517, "budgetMillis": 8700.0, "alerts": ["14.4"]}),
        ("slo", "cluster:c1", {"burn": {"5m": 333.33, "30m": 144.44, "1h": 96.55}}),
        ("detect", "cluster:c1", {"n": 3, "p50Millis": 120_000.0, "lowerP50Millis": 90_000.0}),
        ("detect", "cluster:c1", {"recordDelayMaxMillis": 3_400.0, "withoutLastSeen": 0}),
        ("repair", "cluster:c1", {"outages": 3, "nOpen": 1, "p50Millis": 480_000.0, "p90Millis": None}),
        ("flap", "slot:c1:c:0", {"score": 793.7, "flapping": False, "flappingSinceMillis": None}),
        ("skew", "topic:T1", {"queuesGini": 0.222222, "topicsGini": None, "brokers": 3}),
        ("timeouts", "cluster:c1", {"p999Millis": 61_000.0, "suggestedTimeoutMillis": 120_000.0}),
        ("conflicts", "slot:c1:a:0:state_version", {"type": "state_version", "lastMillis": W0 + 700_000}),
        (
            "incidents",
            f"mass_expiry:{W0 + 1_920_000}",
            {"members": 4, "causes": {"expired": 4}, "ids": [f"{W0 + 1_923_400}-0"], "restoredMillis": None},
        ),
    ],
)
def test_a_report(run: Http, report: str, unit: str, values: dict[str, Any]) -> None:
    reply = run.ok("GET", f"/v1/reports/{report}")
    row = next(row for row in reply["rows"] if row["unit"] == unit)
    assert values.items() <= row.items()


def test_churn(run: Http) -> None:
    reply = run.ok("GET", "/v1/reports/churn?window=1h&limit=2")
    assert reply["rows"] == [
        {"unit": "c1:first", "cluster": "c1", "cause": "first", "acts": 4, "pairs": 5},
        {"unit": "c1:expired", "cluster": "c1", "cause": "expired", "acts": 2, "pairs": 3},
    ]
    assert reply["topics"] == [{"topic": "T1", "changes": 9}, {"topic": "T2", "changes": 2}]
    assert units(run.ok("GET", "/v1/reports/churn?window=1h&unit=c2")) == []


@pytest.mark.parametrize("report", [view.name for view in VIEWS if not view.has_windows])
def test_a_report_that_found_nothing(http: Http, redis: redis_py.Redis, report: str) -> None:
    publish(redis, "default", RUN, msgspec.structs.replace(results(), tables={}))
    assert http.ok("GET", f"/v1/reports/{report}")["rows"] == []


def test_unknown_columns_are_left_out(run: Http, redis: redis_py.Redis, keys: Keys) -> None:
    key = keys.report("slo")
    reported = json.loads(redis.hget(key, "cluster:c1") or "")
    redis.hset(key, "cluster:c1", json.dumps(reported | {"weather": "fair"}))
    assert units(run.ok("GET", "/v1/reports/slo")) == ["cluster:c1"]


def test_another_run_between_two_reads_is_noticed(keys: Keys) -> None:
    """The replies of a run that is published after the meta data was read."""
    meta = {
        "run": "r1",
        "as_of_ms": "1",
        "took_ms": "2",
        "events": "3",
        "holes": "0",
        "phantoms": "0",
        "rejected": "0",
        "provisional": "0",
        "left_out": "0",
        "names": "slo churn:1h",
    }
    plan = served(keys)
    next(plan)
    plan.send([meta, (5, 6000), ["r2", "5"]])
    plan.send([{}, (5, 6000), ["r2", "5"]])
    plan.send([meta | {"run": "r2", "published_ms": "4"}, (5, 6000), ["r2", "5"]])
    with pytest.raises(StopIteration) as done:
        plan.send([meta | {"run": "r2", "published_ms": "5"}, (7, 8000), ["r2", "5"]])
    assert (done.value.value.meta.run, done.value.value.now_ms) == ("r2", 7008)
    assert done.value.value.meta.windows("churn") == ("1h",)


def test_the_run_before_is_gone(run: Http, redis: redis_py.Redis) -> None:
    later = results(report_availability=(availability("cluster:c2", (1, 0, 0, 0), 0),))
    publish(redis, "default", msgspec.structs.replace(RUN, run="r2"), later)
    reply = run.ok("GET", "/v1/reports/availability?window=1h")
    assert (reply["run"], units(reply)) == ("r2", ["cluster:c2"])
    assert run.ok("GET", "/v1/reports")["windows"]["availability"] == ["1h"]
