"""Topics and routes."""

import json
from urllib.parse import quote

import pytest
import redis as redis_py

from registry.drivers import run
from registry.keys import Keys
from registry.plans import Origin
from registry.registration.register import Registration, register
from registry.routes import RouteView, read_route, route_of
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody, encode_register_broker_body
from rocketmq_remoting.route import decode_route
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo
from rocketmq_remoting.version import CURRENT
from tests.api.http import MASTER, SLAVE, Http, a_broker

OTHER = a_broker(cluster="c2", brokerName="broker-b", brokerAddr=SLAVE, zoneName="Zone2")


def brokers_of(http: Http, path: str) -> list[str]:
    route = http.ok("GET", path)
    assert [data["brokerName"] for data in route["queueDatas"]] == [
        data["brokerName"] for data in route["brokerDatas"]
    ]
    return [data["brokerName"] for data in route["brokerDatas"]]


def test_topics_of_all_and_of_one_cluster(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", OTHER | {"topics": [{"topicName": "TopicA"}, {"topicName": "TopicC"}]})
    assert http.ok("GET", "/v1/topics")["topics"] == ["TopicA", "TopicB", "TopicC"]
    assert http.ok("GET", "/v1/topics?cluster=c2")["topics"] == ["TopicA", "TopicC"]
    assert http.ok("GET", "/v1/topics?cluster=c3")["topics"] == []


def test_topics_of_one_broker(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", OTHER | {"topics": [{"topicName": "TopicA"}, {"topicName": "Orders"}]})
    assert http.ok("GET", "/v1/topics?broker=broker-b")["topics"] == ["Orders", "TopicA"]
    assert http.ok("GET", "/v1/topics?broker=broker-b&prefix=T")["topics"] == ["TopicA"]
    assert http.ok("GET", "/v1/topics?broker=broker-c")["topics"] == []
    assert http.ok("GET", "/v1/topics?broker=broker-b&cluster=c2")["topics"] == ["Orders", "TopicA"]
    assert http.ok("GET", "/v1/topics?broker=broker-b&cluster=c1")["topics"] == []


NAMES = ("%RETRY%a", "%RETRY%b", "%25", "*", "*b", "?x", "[a]", "[ab", r"\d", "a", "ab", "aé", "aéb", "é")


@pytest.mark.parametrize("cluster", [None, "c1"])
def test_topics_by_prefix(http: Http, cluster: str | None) -> None:
    """Signs of Redis's patterns are letters of a name."""
    http.ok("POST", "/v1/brokers", a_broker(topics=[{"topicName": name} for name in NAMES]))
    of_cluster = f"&cluster={cluster}" if cluster else ""
    for prefix in {name[:end] for name in NAMES for end in range(len(name) + 1)} | {
        "none",
        "[ab]",
        "a*",
        "^",
    }:
        wanted = sorted(name for name in NAMES if name.startswith(prefix))
        listed: list[str] = []
        after: str | None = ""
        while after is not None:
            path = f"/v1/topics?limit=2&prefix={quote(prefix)}&after={quote(after)}{of_cluster}"
            reply = http.ok("GET", path)
            assert len(reply["topics"]) <= 2
            listed += reply["topics"]
            after = reply["next"]
        assert listed == wanted, prefix


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        pytest.param("enableAllTopicList", "/v1/topics", id="of all clusters"),
        pytest.param("enableTopicList", "/v1/topics?cluster=c1", id="of one cluster"),
        pytest.param("enableTopicList", "/v1/topics?broker=broker-a", id="of one broker"),
    ],
)
def test_lists_can_be_switched_off(http: Http, setting: str, path: str) -> None:
    http.ok("PATCH", "/v1/settings", {"settings": {setting: False}})
    assert http.refused("GET", path) == (403, "switched-off", None)


def test_queue_data_of_a_topic(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    numbers = {
        "brokerName": "broker-a",
        "readQueueNums": 2,
        "writeQueueNums": 1,
        "perm": 6,
        "topicSysFlag": 3,
    }
    assert http.ok("PUT", "/v1/topics/%25RETRY%25group", {"queueDatas": [numbers]})["eventId"]
    assert http.ok("GET", "/v1/topics/%25RETRY%25group") == {"topic": "%RETRY%group", "queueDatas": [numbers]}
    assert http.ok("PUT", "/v1/topics/%25RETRY%25group", {"queueDatas": [numbers]})["eventId"] is None


def test_all_or_nothing_of_queue_data_is_set(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    body = {"queueDatas": [{"brokerName": "broker-a"}, {"brokerName": "broker-x"}]}
    assert http.refused("PUT", "/v1/topics/TopicN", body) == (422, "invalid-field", "queueDatas.1.brokerName")
    assert http.refused("GET", "/v1/topics/TopicN") == (404, "topic-not-found", None)


def test_a_topic_is_deleted_from_one_cluster_or_all(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", OTHER)
    assert http.refused("DELETE", "/v1/topics/TopicA?cluster=c3") == (404, "topic-not-found", None)
    assert http.ok("DELETE", "/v1/topics/TopicA?cluster=c1")["eventId"]
    assert brokers_of(http, "/v1/routes/TopicA") == ["broker-b"]
    assert http.ok("DELETE", "/v1/topics/TopicB")["eventId"]
    assert http.ok("GET", "/v1/topics")["topics"] == ["TopicA"]


@pytest.mark.parametrize(
    ("query", "brokers"),
    [
        pytest.param("", ["broker-a", "broker-b"], id="no filter"),
        pytest.param("?zone=zone2", ["broker-b"], id="of one zone, in any case"),
        pytest.param("?zone=elsewhere", [], id="of a zone without brokers"),
    ],
)
def test_routes_by_zone(http: Http, query: str, brokers: list[str]) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", OTHER)
    assert brokers_of(http, "/v1/routes/TopicA" + query) == brokers


def test_settings_shape_routes(http: Http) -> None:
    acting = a_broker(brokerAddr=SLAVE, brokerId=2, enableActingMaster=True)
    http.ok("POST", "/v1/brokers", acting)
    http.ok("PUT", "/v1/kv/ORDER_TOPIC_CONFIG/TopicA", {"value": "broker-a:8"})
    before = http.ok("GET", "/v1/routes/TopicA")
    assert before["brokerDatas"][0]["brokerAddrs"] == {"2": SLAVE}
    assert "orderTopicConf" not in before
    http.ok(
        "PATCH", "/v1/settings", {"settings": {"supportActingMaster": True, "orderMessageEnable": "true"}}
    )
    after = http.ok("GET", "/v1/routes/TopicA")
    assert after["brokerDatas"][0]["brokerAddrs"] == {"0": SLAVE}
    assert after["orderTopicConf"] == "broker-a:8"


def test_a_service_that_just_started_may_ask_for_patience(
    http: Http, redis: redis_py.Redis, keys: Keys
) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("PATCH", "/v1/settings", {"settings": {"needWaitForService": True}})
    reply = http("GET", "/v1/routes/TopicA")
    assert (reply.status, reply.json["type"]) == (503, "urn:redis-namesrv:service-starting")
    redis.hset(keys.events_meta, "started_ms", (redis.time()[0] - 46) * 1000)
    assert http.ok("GET", "/v1/routes/TopicA")


def test_a_route_is_what_clients_get(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    mapping = TopicQueueMappingInfo("TopicA", "broker-a", 4, {0: 1, 2: 3}, epoch=7)
    topics = {name: TopicConfig(name) for name in ("TopicA", "TopicB")}
    body = RegisterBrokerBody(
        DataVersion(0, 1, 1),
        topics,
        frozenset(topics),
        ("127.0.1.1:8",),
        {"TopicA": mapping},
        DataVersion(0, 1, 1),
    )
    encoded = encode_register_broker_body(body, version=CURRENT, compressed=False)
    registration = Registration("c1", "broker-a", MASTER, 0, zone="z", version=CURRENT, body=encoded)
    run(register(keys, registration, Origin("w1-1", "wire:127.0.1.1:1")), redis)
    route = route_of(run(read_route(keys, "TopicA"), redis), RouteView())
    assert route.filter_server_table
    assert route.topic_queue_mapping_by_broker == {"broker-a": mapping}
    assert decode_route(json.dumps(http.ok("GET", "/v1/routes/TopicA")).encode()) == route
