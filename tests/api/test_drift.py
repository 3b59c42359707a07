"""Comparisons of name servers by HTTP, and what metrics and the doctor say of them."""

from typing import Any, Final

import msgspec
import pytest
import redis as redis_py

from registry.drift import COMPARISONS_MOST, KINDS, Comparison
from registry.keys import Keys
from tests.api.http import Http

PATH: Final = "/v1/drift/java-and-ours"
TWO: Final = ["10.0.0.1:9876", "ns.example:9876"]
SAME: Final[dict[str, Any]] = {"nameServers": TWO, "validForSeconds": 180}
EXAMPLE: Final = {"kind": "topic-missing", "subject": "TopicTest", "what": "unknown at ns.example:9876"}
DRIFT: Final = SAME | {"counts": {"topic-missing": 3, "kv-differs": 1}, "examples": [EXAMPLE]}
SILENT: Final = SAME | {"unreachable": [{"nameServer": TWO[0], "reason": "no answer within 5 s"}]}
EMPTY: Final[dict[str, Any]] = {"counts": {}, "unreachable": [], "examples": []}


def overdue(redis: redis_py.Redis, keys: Keys) -> None:
    """As if the comparison had last been reported ten minutes ago."""
    one = msgspec.json.decode(str(redis.hget(keys.drift, "java-and-ours")), type=Comparison)
    before = msgspec.structs.replace(one, at_ms=one.at_ms - 600_000)
    redis.hset(keys.drift, "java-and-ours", msgspec.json.encode(before).decode())


def samples(http: Http) -> dict[str, float]:
    """Return the metrics of comparisons, by name and labels but the namespace; the scrape is a new one."""
    text = http.client.get("/metrics").data.decode()
    lines = (line.rpartition(" ") for line in text.splitlines() if line.startswith("rocketmq_namesrv_drift"))
    return {
        name.removeprefix("rocketmq_namesrv_drift_").replace('ns="default",', ""): float(value)
        for name, _, value in lines
    }


def findings(http: Http) -> list[tuple[str, list[str]]]:
    listed = http.ok("GET", "/v1/doctor")["findings"]
    return [(one["check"], one["subjects"]) for one in listed if one["check"].startswith("drift")]


@pytest.mark.parametrize(
    ("body", "outcome"),
    [(SAME, "same"), (DRIFT, "drift"), (SILENT, "unreachable")],
    ids=lambda value: str(value)[:9],
)
def test_a_result_is_reported_and_read(http: Http, body: dict[str, Any], outcome: str) -> None:
    done = http.ok("PUT", PATH, body)
    assert http.ok("PUT", PATH, body) == {"eventId": None}
    one = http.ok("GET", PATH)
    listed = http.ok("GET", "/v1/drift")
    assert listed["comparisons"] == [one]
    assert listed["nowMillis"] >= one.pop("reportedMillis") >= one.pop("sinceMillis")
    assert one == EMPTY | body | {"name": "java-and-ours", "outcome": outcome, "stale": False}
    assert done["eventId"]


def test_one_is_deleted(http: Http) -> None:
    http.ok("PUT", PATH, SAME)
    assert http.ok("DELETE", PATH)["eventId"]
    assert http.ok("DELETE", PATH) == {"eventId": None}
    assert http.refused("GET", PATH) == (404, "comparison-not-found", None)
    assert http.ok("GET", "/v1/drift")["comparisons"] == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"nameServers": TWO[:1]}, "nameServers"),
        ({"nameServers": ["no address", TWO[1]]}, "nameServers.0"),
        ({"validForSeconds": 0}, "validForSeconds"),
        ({"validForSeconds": 7 * 86_400 + 1}, "validForSeconds"),
        ({"counts": {"news": 1}}, "counts.news"),
        ({"counts": {"kv-differs": 0}}, "counts.kv-differs"),
        ({"examples": [EXAMPLE] * 21}, "examples"),
        ({"examples": [EXAMPLE | {"what": "x" * 301}]}, "examples.0.what"),
        ({"examples": [EXAMPLE | {"subject": "two\nlines"}]}, "examples.0.subject"),
        ({"unreachable": SILENT["unreachable"]}, "counts"),
        ({"unreachable": SILENT["unreachable"], "counts": {}}, "examples"),
        ({"more": 1}, "more"),
    ],
    ids=str,
)
def test_a_member_that_makes_no_sense_is_named(http: Http, change: dict[str, Any], field: str) -> None:
    status, kind, named = http.refused("PUT", PATH, DRIFT | change)
    assert (status, kind) == (422, "invalid-field")
    assert named is not None
    assert named.startswith(field)


def test_a_list_that_is_too_short_or_long_is_told_its_bounds(http: Http) -> None:
    said = [
        http("PUT", PATH, DRIFT | change).json["detail"]
        for change in ({"nameServers": TWO[:1]}, {"examples": [EXAMPLE] * 21})
    ]
    assert said == ["nameServers: has to have at least 2 items", "examples: has to have at most 20 items"]


@pytest.mark.parametrize("name", ["a" * 65, "a%20b", "a%3Ab", "%C3%A4"])
def test_a_name_that_is_no_label_is_refused(http: Http, name: str) -> None:
    assert http.refused("PUT", f"/v1/drift/{name}", SAME) == (422, "invalid-field", "name")


def test_one_more_than_there_may_be_is_refused(http: Http) -> None:
    for number in range(COMPARISONS_MOST):
        http.ok("PUT", f"/v1/drift/c{number}", SAME)
    assert http.refused("PUT", PATH, SAME) == (409, "limit-reached", None)


def test_metrics_have_the_counts_of_each_kind(http: Http) -> None:
    http.ok("PUT", PATH, DRIFT)
    one = 'comparison="java-and-ours"'
    found = samples(http)
    assert 0 <= found.pop(f"age_seconds{{{one}}}") < 60
    assert found == {
        f"valid_seconds{{{one}}}": 180,
        f"unreachable{{{one}}}": 0,
        **{f'differences{{{one},kind="{kind}"}}': DRIFT["counts"].get(kind, 0) for kind in KINDS},
    }


def test_metrics_have_no_counts_where_a_name_server_did_not_answer(http: Http) -> None:
    http.ok("PUT", PATH, SILENT)
    found = samples(http)
    assert found['unreachable{comparison="java-and-ours"}'] == 1
    assert not any(name.startswith("differences") for name in found)


def test_metrics_of_a_stale_result_have_its_age_alone(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("PUT", PATH, DRIFT)
    overdue(redis, keys)
    found = samples(http)
    assert found.keys() == {f'{name}_seconds{{comparison="java-and-ours"}}' for name in ("age", "valid")}
    assert found['age_seconds{comparison="java-and-ours"}'] >= 600


def test_the_doctor_has_what_was_found_and_what_is_not_known(
    http: Http, redis: redis_py.Redis, keys: Keys
) -> None:
    http.ok("PUT", PATH, SAME)
    assert findings(http) == []
    http.ok("PUT", PATH, DRIFT)
    assert findings(http) == [("drift", ["java-and-ours"])]
    http.ok("PUT", PATH, SILENT)
    assert findings(http) == [("drift-unreachable", ["java-and-ours"])]
    overdue(redis, keys)
    assert findings(http) == [("drift-stale", ["java-and-ours"])]
