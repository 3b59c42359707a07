"""Any request gets a success or a problem of the 4xx kind."""

import gc
import string
import warnings
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.http import MASTER, PROBLEM, Http, a_broker

QUEUE_DATA: dict[str, object] = {"brokerName": "broker-a", "perm": 6, "readQueueNums": 8, "topicSysFlag": 0}
FULL = a_broker(
    haServerAddr=MASTER,
    zoneName="z",
    enableActingMaster=True,
    heartbeatTimeoutMillis=1000,
    filterServers=[MASTER],
)
COMPARISON: dict[str, object] = {
    "nameServers": [MASTER, MASTER],
    "validForSeconds": 60,
    "counts": {"kv-differs": 1},
    "examples": [{"kind": "kv-differs", "subject": "n k", "what": "w"}],
}
OPERATIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/v1/brokers", FULL),
    ("POST", "/v1/brokers/broker-a/heartbeat", {"cluster": "c1", "brokerAddr": MASTER}),
    ("POST", "/v1/brokers/broker-a/write-permission", {"writable": True}),
    ("PUT", "/v1/brokers/broker-a/drain", {"owner": "o", "reason": "r", "untilMillis": 2**41}),
    ("PUT", "/v1/topics/T", {"queueDatas": [QUEUE_DATA]}),
    ("PUT", "/v1/drift/d", COMPARISON),
    ("PUT", "/v1/kv/n", {"table": {"k": "v"}}),
    ("PUT", "/v1/kv/n/k", {"value": "v"}),
    ("PATCH", "/v1/settings", {"settings": {"orderMessageEnable": True, "listenPort": 1}}),
]
READS = [
    "/v1/clusters",
    "/v1/brokers",
    "/v1/drains",
    "/v1/topics",
    "/v1/routes",
    "/v1/kv",
    "/v1/kv/n",
    "/v1/settings",
    "/v1/options",
    "/v1/events",
    "/v1/audit",
    "/v1/doctor",
    "/v1/drift",
    "/v1/reports",
    "/v1/reports/availability",
    "/healthz",
]
leaves = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text()
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Fail a test that warns or leaves resources open; earlier tests' are collected first."""
    gc.collect()
    with warnings.catch_warnings(record=True, action="always") as seen:
        yield
        gc.collect()
    assert [str(one.message) for one in seen] == []


@st.composite
def with_one_change(draw: st.DrawFn, body: Any) -> Any:
    """Draw the body with one value in it, at any depth, replaced by anything."""
    if isinstance(body, dict) and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(body)))
        return body | {key: draw(with_one_change(body[key]))}
    if isinstance(body, list) and body and draw(st.booleans()):
        return [draw(with_one_change(body[0])), *body[1:]]
    return draw(anything)


def answered(http: Http, method: str, path: str, body: object = None) -> None:
    reply = http(method, path, body)
    if reply.status == 200:
        assert reply.type == "application/json"
    else:
        assert 400 <= reply.status < 500, reply
        assert reply.type == PROBLEM
        assert reply.json["status"] == reply.status


@pytest.mark.parametrize(("method", "path", "body"), OPERATIONS)
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_body(quick: Http, method: str, path: str, body: dict[str, Any], data: st.DataObject) -> None:
    answered(quick, method, path, data.draw(with_one_change(body)))


@given(
    path=st.sampled_from(READS),
    name=words,
    parameter=words | st.sampled_from(["limit", "after", "since", "kind", "topic"]),
    value=words,
)
@settings(max_examples=150, deadline=None)
def test_any_path_and_parameter(quick: Http, path: str, name: str, parameter: str, value: str) -> None:
    answered(quick, "GET", f"{path}/{quote(name, safe='')}")
    answered(quick, "GET", f"{path}?{quote(parameter)}={quote(value)}")


@given(text=st.binary(max_size=40) | st.text(string.printable, max_size=40).map(str.encode))
@settings(max_examples=100, deadline=None)
def test_any_bytes(quick: Http, text: bytes) -> None:
    reply = quick("PUT", "/v1/kv/n/k", data=text, content_type="application/json")
    assert reply.status in (200, 400, 422)
