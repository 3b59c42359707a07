"""Requests that are refused: each with a problem document that names the field."""

from typing import Any

import pytest
import redis as redis_py
from werkzeug.routing import Rule

from api.app import create_app
from registry.keys import Keys
from registry.options.catalogue import Options
from tests.api.http import PROBLEM, Http, a_broker, a_mirrored

BROKERS, HEARTBEAT, PERMISSION = "/v1/brokers", "/v1/brokers/b/heartbeat", "/v1/brokers/b/write-permission"
TOPIC, KV_TABLE, KV_VALUE, SETTINGS = "/v1/topics/T", "/v1/kv/n", "/v1/kv/n/k", "/v1/settings"
QUEUES = {"brokerName": "b"}


def topic(**members: object) -> dict[str, object]:
    return a_broker(topics=[{"topicName": "T"}, {"topicName": "U"} | members])


BAD_FIELDS = [
    pytest.param("POST", BROKERS, a_broker(colour="red"), "colour", id="register: unknown member"),
    pytest.param("POST", BROKERS, {}, "cluster", id="register: nothing said"),
    pytest.param("POST", BROKERS, [], "body", id="register: no object"),
    pytest.param("POST", BROKERS, a_broker(cluster=""), "cluster", id="register: empty cluster"),
    pytest.param("POST", BROKERS, a_broker(cluster=None), "cluster", id="register: null cluster"),
    pytest.param("POST", BROKERS, a_broker(brokerName="a b"), "brokerName", id="register: blank in a name"),
    pytest.param(
        "POST", BROKERS, a_broker(brokerName="a\n"), "brokerName", id="register: line feed in a name"
    ),
    pytest.param("POST", BROKERS, a_broker(brokerName="x" * 256), "brokerName", id="register: long name"),
    pytest.param("POST", BROKERS, a_broker(broker_name="b"), "broker_name", id="register: another spelling"),
    pytest.param("POST", BROKERS, a_broker(brokerAddr="127.0.0.1"), "brokerAddr", id="register: no port"),
    pytest.param("POST", BROKERS, a_broker(brokerAddr="http://x:1"), "brokerAddr", id="register: a URL"),
    pytest.param("POST", BROKERS, a_broker(brokerAddr="::1:10911"), "brokerAddr", id="register: no brackets"),
    pytest.param(
        "POST", BROKERS, a_broker(brokerAddr="[x]:1"), "brokerAddr", id="register: a name in brackets"
    ),
    pytest.param("POST", BROKERS, a_broker(brokerAddr="127.0.0.1:0"), "brokerAddr", id="register: port 0"),
    pytest.param(
        "POST", BROKERS, a_broker(brokerAddr="127.0.0.1:65536"), "brokerAddr", id="register: port beyond"
    ),
    pytest.param("POST", BROKERS, a_broker(haServerAddr="h"), "haServerAddr", id="register: no HA address"),
    pytest.param("POST", BROKERS, a_broker(brokerId=-1), "brokerId", id="register: negative id"),
    pytest.param("POST", BROKERS, a_broker(brokerId="0"), "brokerId", id="register: id as text"),
    pytest.param("POST", BROKERS, a_broker(brokerId=0.0), "brokerId", id="register: id as a fraction"),
    pytest.param("POST", BROKERS, a_broker(brokerId=True), "brokerId", id="register: id as a flag"),
    pytest.param("POST", BROKERS, a_broker(brokerId=2**63), "brokerId", id="register: id beyond Java's long"),
    pytest.param(
        "POST", BROKERS, a_broker(enableActingMaster=1), "enableActingMaster", id="register: flag as number"
    ),
    pytest.param(
        "POST",
        BROKERS,
        a_broker(heartbeatTimeoutMillis=0),
        "heartbeatTimeoutMillis",
        id="register: no time-out",
    ),
    pytest.param(
        "POST",
        BROKERS,
        a_broker(dataVersion={"counter": 1}),
        "dataVersion.timestamp",
        id="register: half a version",
    ),
    pytest.param("POST", BROKERS, a_broker(topics={}), "topics", id="register: topics as an object"),
    pytest.param("POST", BROKERS, a_broker(topics=None), "topics", id="register: null topics"),
    pytest.param(
        "POST", BROKERS, a_broker(filterServers=["x"]), "filterServers.0", id="register: filter server"
    ),
    pytest.param("POST", BROKERS, topic(perm=16), "topics.1.perm", id="register: perm beyond its bits"),
    pytest.param(
        "POST", BROKERS, topic(readQueueNums=2**31), "topics.1.readQueueNums", id="register: queue numbers"
    ),
    pytest.param(
        "POST", BROKERS, topic(topicName=None), "topics.1.topicName", id="register: topic without name"
    ),
    pytest.param(
        "POST", BROKERS, topic(order=True), "topics.1.order", id="register: unknown member of a topic"
    ),
    pytest.param("POST", HEARTBEAT, {"cluster": "c"}, "brokerAddr", id="heartbeat: no address"),
    pytest.param(
        "POST", HEARTBEAT, {"cluster": "c", "brokerAddr": "h:1", "x": 1}, "x", id="heartbeat: unknown member"
    ),
    pytest.param("DELETE", BROKERS + "/b", None, "cluster", id="unregister: nothing said"),
    pytest.param("DELETE", BROKERS + "/b?cluster=c", None, "brokerAddr", id="unregister: no address"),
    pytest.param(
        "DELETE", BROKERS + "/b?cluster=c&brokerAddr=h:1&id=0", None, "id", id="unregister: unknown"
    ),
    pytest.param("POST", PERMISSION, {}, "writable", id="permission: nothing said"),
    pytest.param("POST", PERMISSION, {"writable": "no"}, "writable", id="permission: no flag"),
    pytest.param("POST", PERMISSION + "?force=1", {"writable": True}, "force", id="permission: parameter"),
    pytest.param("PUT", TOPIC, {}, "queueDatas", id="topic: nothing said"),
    pytest.param("PUT", TOPIC, {"queueDatas": [{}]}, "queueDatas.0.brokerName", id="topic: no broker"),
    pytest.param(
        "PUT", TOPIC, {"queueDatas": [QUEUES]}, "queueDatas.0.brokerName", id="topic: unknown broker"
    ),
    pytest.param(
        "PUT", TOPIC, {"queueDatas": [QUEUES | {"perm": -1}]}, "queueDatas.0.perm", id="topic: perm"
    ),
    pytest.param("PUT", "/v1/topics/a%20b", {"queueDatas": []}, "topic", id="topic: blank in its name"),
    pytest.param("DELETE", TOPIC + "?cluster=", None, "cluster", id="topic: empty cluster"),
    pytest.param("PUT", KV_TABLE, {"table": {"k": 1}}, "table.k", id="kv: number as value"),
    pytest.param("PUT", KV_TABLE, {"k": "v"}, "table", id="kv: bare table"),
    pytest.param("PUT", KV_VALUE, {"value": None}, "value", id="kv: null value"),
    pytest.param("PUT", KV_VALUE, "text", "body", id="kv: bare value"),
    pytest.param("PATCH", SETTINGS, {}, "settings", id="settings: nothing said"),
    pytest.param("PATCH", SETTINGS, {"settings": {"x": "1"}}, "settings.x", id="settings: unknown option"),
    pytest.param(
        "PATCH", SETTINGS, {"settings": {"listenPort": "x"}}, "settings.listenPort", id="settings: number"
    ),
    pytest.param(
        "PATCH", SETTINGS, {"settings": {"clusterTest": "x"}}, "settings.clusterTest", id="settings: flag"
    ),
    pytest.param(
        "PATCH", SETTINGS, {"settings": {"clusterTest": None}}, "settings.clusterTest", id="settings: null"
    ),
    pytest.param("GET", BROKERS + "?limit=0", None, "limit", id="page: limit below 1"),
    pytest.param("GET", BROKERS + "?limit=1001", None, "limit", id="page: limit above 1000"),
    pytest.param("GET", BROKERS + "?limit=many", None, "limit", id="page: limit no number"),
    pytest.param("GET", BROKERS + "?offset=1", None, "offset", id="page: unknown parameter"),
    pytest.param("GET", "/v1/clusters/c?x=1", None, "x", id="cluster: unknown parameter"),
    pytest.param("GET", "/v1/routes/T?zone=", None, "zone", id="route: empty zone"),
    pytest.param("GET", "/v1/events?after=1", None, "after", id="events: half an id"),
    pytest.param(
        "GET", "/v1/events?after=99999999999999999999-0", None, "after", id="events: id beyond 64 bits"
    ),
    pytest.param("GET", "/v1/events?order=newest", None, "order", id="events: order"),
    pytest.param("GET", "/v1/events?topic=", None, "topic", id="events: empty topic"),
    pytest.param("GET", "/v1/events?since=yesterday", None, "since", id="events: no time"),
    pytest.param(
        "GET", "/v1/audit?until=2026-11-28T10:00:00", None, "until", id="audit: time without a zone"
    ),
    pytest.param("GET", "/v1/audit?since=2&until=1", None, "until", id="audit: until before since"),
    pytest.param("GET", "/v1/audit?after=1-x", None, "after", id="audit: no id"),
    pytest.param("GET", "/healthz?x=1", None, "x", id="health: unknown parameter"),
]


@pytest.mark.parametrize(("method", "path", "body", "field"), BAD_FIELDS)
def test_a_wrong_member_is_named(quick: Http, method: str, path: str, body: object, field: str) -> None:
    assert quick.refused(method, path, body) == (422, "invalid-field", field)


def test_what_is_no_array_is_named_in_words_of_json(quick: Http) -> None:
    assert quick("POST", BROKERS, a_broker(topics={})).json["detail"] == "topics: not an array"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param(b"", 400, id="nothing"),
        pytest.param(b"{", 400, id="cut off"),
        pytest.param(b'{"value":"v"} {}', 400, id="more behind it"),
        pytest.param(b"{'value':'v'}", 400, id="single quotes"),
        pytest.param(b'{"value":NaN}', 400, id="no number"),
        pytest.param(b'{"value":"\xff"}', 400, id="no UTF-8"),
        pytest.param(b'{"value":"\\ud800"}', 400, id="half of a surrogate pair"),
        pytest.param(b"[" * 100_000, 400, id="nested without end"),
        pytest.param(b"null", 422, id="null"),
        pytest.param(b'{"value":[' + b"[]," * 149_998 + b"0]}", 422, id="many arrays"),
        pytest.param(b'{"value":[' + b"[]," * 150_000 + b"0]}", 413, id="too many arrays"),
        pytest.param(b'{"value":[' + b"{}," * 250_000 + b"0]}", 413, id="too many objects"),
        pytest.param(b'{"value":[' + b"0," * 1_500_001 + b"0]}", 413, id="too many values"),
        pytest.param(b'{"value":"' + b"v" * (16 << 20) + b'"}', 413, id="over 16 MiB"),
    ],
)
def test_text_that_is_no_such_json_is_refused(quick: Http, text: bytes, status: int) -> None:
    reply = quick("PUT", KV_VALUE, data=text, content_type="application/json")
    assert (reply.status, reply.type, reply.json["status"]) == (status, PROBLEM, status)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", "/v1", 404, id="no such path"),
        pytest.param("GET", "/v1//clusters", 404, id="no redirects"),
        pytest.param("GET", "/static/x", 404, id="no files"),
        pytest.param("GET", "/docs/x", 404, id="no such file of the documentation page"),
        pytest.param("GET", "/docs/..%2Fapp.py", 404, id="no file outside its folder"),
        pytest.param("POST", "/v1/clusters", 405, id="no such method"),
        pytest.param("DELETE", "/v1/kv", 405, id="no deletion of everything"),
        pytest.param("PUT", KV_VALUE, 415, id="a body without its type"),
    ],
)
def test_what_is_not_served(quick: Http, method: str, path: str, status: int) -> None:
    reply = quick(method, path, data=b'{"value":"v"}' if status == 415 else None)
    assert (reply.status, reply.type, reply.json["type"]) == (status, PROBLEM, "about:blank")
    assert ("Allow" in reply.headers) is (status == 405)


@pytest.mark.parametrize("type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
def test_only_json_is_read(quick: Http, type: str) -> None:
    assert quick("PUT", KV_VALUE, data=b'{"value":"v"}', content_type=type).status == 415


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        pytest.param("GET", "/v1/clusters/c", "cluster-not-found", id="cluster"),
        pytest.param("GET", BROKERS + "/b", "broker-not-found", id="broker"),
        pytest.param("DELETE", BROKERS + "/b?cluster=c&brokerAddr=h:1", "broker-not-found", id="unregister"),
        pytest.param("GET", TOPIC, "topic-not-found", id="topic"),
        pytest.param("DELETE", TOPIC, "topic-not-found", id="topic to delete"),
        pytest.param("GET", "/v1/routes/T", "topic-not-found", id="route"),
        pytest.param("GET", KV_TABLE, "config-not-found", id="KV namespace"),
        pytest.param("DELETE", f"{KV_TABLE}?all=true", "config-not-found", id="KV namespace to clear"),
        pytest.param("GET", KV_VALUE, "config-not-found", id="KV value"),
        pytest.param("DELETE", KV_VALUE, "config-not-found", id="KV value to delete"),
    ],
)
def test_what_is_not_there(quick: Http, method: str, path: str, kind: str) -> None:
    assert quick.refused(method, path) == (404, kind, None)


BODIES: dict[tuple[str, str], object] = {
    ("POST", "/v1/brokers"): a_broker(),
    ("POST", "/v1/mirrored-brokers"): a_mirrored(),
    ("POST", "/v1/mirrored-brokers/heartbeats"): {
        "members": [{"cluster": "c", "brokerName": "b", "brokerId": 0, "brokerAddr": "h:1"}]
    },
    ("POST", "/v1/brokers/<name>/heartbeat"): {"cluster": "c", "brokerAddr": "h:1"},
    ("POST", "/v1/brokers/<name>/write-permission"): {"writable": True},
    ("PUT", "/v1/brokers/<name>/drain"): {"owner": "o", "reason": "r"},
    ("PUT", "/v1/drift/<name>"): {"nameServers": ["h:1", "h:2"], "validForSeconds": 60},
    ("PUT", "/v1/topics/<topic>"): {"queueDatas": [QUEUES]},
    ("PUT", "/v1/kv/<namespace>"): {"table": {}},
    ("PUT", "/v1/kv/<namespace>/<path:key>"): {"value": "v"},
    ("PATCH", "/v1/settings"): {"settings": {"clusterTest": True}},
    ("POST", "/v1/events/checkpoints"): {},
    ("POST", "/v1/access/tokens"): {"principal": "p", "roles": ["reader"]},
    ("POST", "/v1/access/tokens/<token_id>/rotate"): {},
    ("POST", "/v1/access/revocations"): {"credential": "acl:x"},
}
QUERIES = {
    ("DELETE", "/v1/brokers/<name>"): "?cluster=c&brokerAddr=h:1",
    ("DELETE", "/v1/mirrored-brokers"): "?cluster=c&brokerAddr=h:1&mirroredFrom=h:2",
    ("DELETE", "/v1/kv/<namespace>"): "?all=true",
}


def every_operation() -> list[tuple[str, Rule]]:
    rules = create_app(Options(), redis=redis_py.Redis()).url_map.iter_rules()
    # history is asked over the job queue: test_history.py has a test of one that is away
    # options are known without the store (test_options.py), and so is a caller without a token
    others = ("/v1/history", "/v1/options", "/v1/whoami")
    of_store = [rule for rule in rules if rule.rule.startswith("/v1/") and not rule.rule.startswith(others)]
    return [
        (method, rule)
        for rule in of_store
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]


@pytest.mark.parametrize(
    ("method", "rule"),
    [pytest.param(method, rule, id=f"{method} {rule}") for method, rule in every_operation()],
)
def test_without_the_store_every_operation_is_unavailable(storeless: Http, method: str, rule: Rule) -> None:
    path = "/".join("x" if part.startswith("<") else part for part in rule.rule.split("/"))
    reply = storeless(method, path + QUERIES.get((method, rule.rule), ""), BODIES.get((method, rule.rule)))
    assert (reply.status, reply.type) == (503, PROBLEM)
    assert reply.json["type"] == "urn:redis-namesrv:store-unavailable"
    assert reply.headers["Retry-After"] == "1"


def test_what_the_store_refuses_is_unavailable(
    http: Http, redis: redis_py.Redis, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    redis.set(keys.topics, "no set")
    reply = http("GET", "/v1/limits")
    assert (reply.status, reply.json["type"]) == (503, "urn:redis-namesrv:store-refused")
    assert "WRONGTYPE" in reply.json["detail"]
    assert "Traceback" not in caplog.text
    redis.delete(keys.topics)
    assert http("GET", "/v1/limits").status == 200


def test_a_defect_is_logged_and_not_shown(
    quick: Http, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("api.clusters.cluster_info", broken)
    reply = quick("GET", "/v1/clusters")
    assert (reply.status, reply.type, reply.json["type"]) == (500, PROBLEM, "urn:redis-namesrv:defect")
    assert "secret" not in str(reply.json)
    assert "a secret" in caplog.text
