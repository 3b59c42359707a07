"""Names in a path: whatever can be registered can be seen and removed, and an empty part means nothing more."""

import pytest
import redis as redis_py

from api.path_names import Key, Name, RawPaths, raw_path, unreadable
from registry import kv
from registry.drivers import run
from registry.keys import Keys
from registry.plans import Origin
from registry.registration.register import Registration, register
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody, encode_register_broker_body
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.version import CURRENT
from tests.api.http import Http

ORIGIN = Origin("t-1", "test")
ADDRESS = "127.0.1.1:10911"

names = pytest.mark.parametrize(
    ("name", "part"),
    [
        pytest.param("a/b", "a%2Fb", id="a slash"),
        pytest.param("/", "%2f", id="only a slash"),
        pytest.param("..", "..", id="dots, as they are"),
        pytest.param("..", "%2E%2E", id="dots"),
        pytest.param("..", "=..", id="dots that stay"),
        pytest.param("", "=", id="empty"),
        pytest.param("=", "%3D", id="an equals sign"),
        pytest.param("=x", "==x", id="an equals sign behind one"),
        pytest.param("a%2Fb", "a%252Fb", id="what looks encoded"),
        pytest.param("a?b#c d", "a%3Fb%23c%20d", id="what ends a path"),
        pytest.param("你", "%E4%BD%A0", id="not ASCII"),
        pytest.param("drain", "drain", id="a word of a path"),
        pytest.param("x" * 300, "x" * 300, id="longer than HTTP registers"),
    ],
)


def register_on_the_wire(redis: redis_py.Redis, name: str) -> None:
    """As a broker does it, whose names are any text."""
    topics = {name: TopicConfig(name, 4, 4, 6, 0), "other": TopicConfig("other", 4, 4, 6, 0)}
    body = RegisterBrokerBody(DataVersion(0, 1, 1), topics, frozenset(topics), ())
    registration = Registration(
        cluster=name,
        name=name,
        address=ADDRESS,
        id=0,
        ha=None,
        zone=None,
        acting=None,
        timeout_ms=60_000,
        version=CURRENT,
        body=encode_register_broker_body(body, version=CURRENT, compressed=False),
        single_topic=True,
    )
    assert not run(register(Keys(), registration, ORIGIN), redis).refused


@names
def test_a_topic_is_seen_and_removed(http: Http, redis: redis_py.Redis, name: str, part: str) -> None:
    register_on_the_wire(redis, name)
    assert http.ok("GET", f"/v1/topics/{part}")["topic"] == name
    assert http.ok("GET", f"/v1/routes/{part}")["brokerDatas"][0]["brokerName"] == name
    assert http.ok("DELETE", f"/v1/topics/{part}")["eventId"]
    assert http.ok("GET", "/v1/topics")["topics"] == ["other"]


@names
def test_a_broker_is_seen_drained_and_removed(
    http: Http, redis: redis_py.Redis, name: str, part: str
) -> None:
    register_on_the_wire(redis, name)
    assert http.ok("GET", f"/v1/brokers/{part}")["brokerName"] == name
    assert http.ok("GET", f"/v1/clusters/{part}")["cluster"] == name
    assert http.ok("PUT", f"/v1/brokers/{part}/drain", {"owner": "o", "reason": "r"})["topicCount"] == 2
    assert http.ok("DELETE", f"/v1/brokers/{part}/drain")["topicCount"] == 2
    member = {"cluster": name, "brokerAddr": ADDRESS}
    assert http.ok("POST", f"/v1/brokers/{part}/heartbeat", member)
    assert http("DELETE", f"/v1/brokers/{part}", query_string=member).status == 200
    assert http.ok("GET", "/v1/brokers")["brokers"] == []


@names
def test_a_value_is_set_seen_and_deleted(http: Http, redis: redis_py.Redis, name: str, part: str) -> None:
    http.ok("PUT", f"/v1/kv/{part}/{part}", {"value": "v"})
    assert run(kv.table(Keys(), name), redis) == {name: "v"}
    assert http.ok("GET", f"/v1/kv/{part}/{part}") == {"namespace": name, "key": name, "value": "v"}
    assert http.ok("DELETE", f"/v1/kv/{part}/{part}")["eventId"]
    assert http.ok("GET", f"/v1/kv/{part}")["table"] == {}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/v1/kv/n/"),
        ("DELETE", "/v1/kv/n/?all=true"),
        ("DELETE", "/v1/kv/n//k"),
        ("DELETE", "/v1/kv//k"),
        ("PUT", "/v1/kv/n/"),
        ("PUT", "/v1/kv/"),
        ("PUT", "/v1/topics/"),
        ("DELETE", "/v1/topics/"),
        ("DELETE", "/v1/brokers/"),
        ("DELETE", "/v1/brokers//drain"),
        ("DELETE", "/v1/brokers/broker-a/drain/"),
        ("DELETE", "/v1/hold/"),
        ("GET", "/v1/topics/"),
    ],
)
def test_an_empty_part_is_no_name(http: Http, method: str, path: str) -> None:
    http.ok("PUT", "/v1/kv/n/k", {"value": "v"})
    body: object = {"table": {}} if method == "PUT" else None
    assert http.refused(method, path, body) == (404, "blank", None)
    assert http.ok("GET", "/v1/kv/n")["table"] == {"k": "v"}


def test_an_empty_first_part_is_none_either(http: Http) -> None:
    """A proxy that guards paths by their beginning would let it pass."""
    http.ok("PUT", "/v1/kv/n/k", {"value": "v"})
    for raw, status in (("//v1/kv/n", 404), ("///v1/kv/n", 404), ("/v1/kv/n", 200)):
        assert http("GET", "/x", environ_overrides={"RAW_URI": raw}).status == status


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ("", (422, "invalid-field", "all")),
        ("?all=", (422, "invalid-field", "all")),
        ("?all=false", (422, "invalid-field", "all")),
        ("?key=k", (422, "invalid-field", "all")),
    ],
)
def test_a_namespace_is_cleared_only_on_request(
    http: Http, query: str, refusal: tuple[int, str, str]
) -> None:
    http.ok("PUT", "/v1/kv/n/k", {"value": "v"})
    assert http.refused("DELETE", f"/v1/kv/n{query}") == refusal
    assert http.ok("GET", "/v1/kv/n")["table"] == {"k": "v"}


@pytest.mark.parametrize("part", ["%", "%zz"])
def test_what_encodes_nothing_is_a_name(http: Http, part: str) -> None:
    assert http.refused("GET", f"/v1/topics/{part}") == (404, "topic-not-found", None)


@pytest.mark.parametrize("part", ["%FF%FE", "=%FF", "a%2F%ED%A0%80"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/topics/{}"),
        ("PUT", "/v1/kv/{}/k"),
        ("PUT", "/v1/kv/n/{}"),
        ("DELETE", "/v1/kv/{}?all=true"),
        ("DELETE", "/v1/brokers/{}/drain"),
        ("GET", "/nowhere/{}"),
    ],
)
def test_what_is_no_utf_8_is_refused(http: Http, method: str, path: str, part: str) -> None:
    body: object = {"value": "v"} if method == "PUT" else None
    assert http.refused(method, path.format(part), body) == (400, "malformed-path", None)
    detail = http(method, path.format(part), body).json["detail"]
    assert detail == f"a part of the path is no UTF-8: {part}"
    assert http.ok("GET", "/v1/kv")["namespaces"] == []


def test_bytes_of_a_path_that_are_not_encoded_are_utf_8_too() -> None:
    assert unreadable("/v1/topics/\xe4\xbd\xa0/%E4%BD%A0/%") is None
    assert unreadable("/v1/topics/\xff") == "%FF"


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/v1/a?b/c", "/v1/a"),
        ("/v1/a#b", "/v1/a"),
        ("//v1", "//v1"),
        ("http://host:1/v1/a%2Fb?c", "/v1/a%2Fb"),
        ("http://host", "/"),
        ("*", "/"),
    ],
)
def test_the_path_of_a_target(target: str, path: str) -> None:
    assert raw_path(target) == path


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"RAW_URI": "/v1/%74opics/a%2fb%2Dc"}, "/v1/topics/a%2fb-c"),
        ({"RAW_URI": "/mount/v1", "SCRIPT_NAME": "/mount"}, "/v1"),
        ({"PATH_INFO": "/v1/\xe4\xbd\xa0 /"}, "/v1/%E4%BD%A0%20/"),
    ],
)
def test_what_the_application_is_given(environ: dict[str, str], path: str) -> None:
    given: list[str] = []

    def application(environ: dict[str, str], start_response: object) -> list[bytes]:
        given.append(environ["PATH_INFO"])
        return []

    RawPaths(application)(dict(environ), lambda *_: lambda _: None)
    assert given == [path]


@pytest.mark.parametrize("kind", [Name, Key])
def test_a_part_that_is_made_is_read_as_the_same_name(kind: type[Name]) -> None:
    converter = kind(None)  # type: ignore[arg-type]
    for name in ("", "..", "a/b", "=x", "%2F", "你"):
        assert converter.to_python(converter.to_url(name)) == name
