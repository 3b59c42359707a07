"""Brokers that register, send heartbeats and unregister by HTTP: as on the wire."""

from typing import Any

import pytest
import redis as redis_py

from api.app import create_app
from registry import kv
from registry.drivers import run
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Origin
from registry.registration.register import Registration, register
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody, encode_register_broker_body
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.version import CURRENT
from tests.api.http import MASTER, SLAVE, Http, a_broker

HEARTBEAT = "/v1/brokers/broker-a/heartbeat"
LEAVE = "/v1/brokers/broker-a?cluster=c1&brokerAddr="
MEMBER = {"cluster": "c1", "brokerAddr": MASTER}
PERMISSION = "/v1/brokers/broker-a/write-permission"


def a_slave(**members: object) -> dict[str, object]:
    return a_broker(brokerAddr=SLAVE, brokerId=1, topics=[]) | members


def age(redis: redis_py.Redis, keys: Keys, member: str, lease_ms: int) -> None:
    """Set the end of a lease to `lease_ms` from now."""
    seconds, micros = redis.time()
    redis.zadd(keys.leases, {member: seconds * 1000 + micros // 1000 + lease_ms})


def perms(http: Http) -> dict[str, int]:
    names = http.ok("GET", "/v1/topics")["topics"]
    return {name: http.ok("GET", f"/v1/topics/{name}")["queueDatas"][0]["perm"] for name in names}


def test_a_registered_broker_is_routed_to(http: Http) -> None:
    done = http.ok("POST", "/v1/brokers", a_broker())
    assert done["eventId"]
    assert (done["masterAddr"], done["haServerAddr"], done["orderTopics"]) == (None, None, None)
    assert http.ok("GET", "/v1/routes/TopicA") == {
        "brokerDatas": [
            {
                "brokerName": "broker-a",
                "cluster": "c1",
                "brokerAddrs": {"0": MASTER},
                "enableActingMaster": False,
            }
        ],
        "queueDatas": [
            {"brokerName": "broker-a", "readQueueNums": 8, "writeQueueNums": 4, "perm": 6, "topicSysFlag": 0}
        ],
        "filterServerTable": {},
    }


def test_the_wire_finds_nothing_changed_after_http(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    """Both ways write the same: a registration by one only renews the lease by the other."""
    http.ok(
        "POST", "/v1/brokers", a_broker(haServerAddr="127.0.1.1:10912", zoneName="z", enableActingMaster=True)
    )
    topics = {"TopicA": TopicConfig("TopicA", 8, 4), "TopicB": TopicConfig("TopicB", perm=4)}
    body = RegisterBrokerBody(DataVersion(0, 1700000000000, 1), topics, frozenset(topics))
    by_wire = Registration(
        cluster="c1",
        name="broker-a",
        address=MASTER,
        id=0,
        ha="127.0.1.1:10912",
        zone="z",
        acting=True,
        version=CURRENT,
        body=encode_register_broker_body(body, version=CURRENT, compressed=False),
    )
    assert run(register(keys, by_wire, Origin("w1-1", "wire:127.0.1.1:4711")), redis).event_id == ""


def test_a_repeated_registration_changes_nothing(http: Http) -> None:
    assert http.ok("POST", "/v1/brokers", a_broker())["eventId"]
    assert http.ok("POST", "/v1/brokers", a_broker())["eventId"] is None


def test_without_a_data_version_every_registration_is_a_change(http: Http) -> None:
    body = a_broker()
    del body["dataVersion"]
    http.ok("POST", "/v1/brokers", body)
    assert http.ok("POST", "/v1/brokers", body)["eventId"]


def test_events_name_the_remote_end_and_the_request(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("DELETE", LEAVE + MASTER)
    events = [event["fields"] for event in http.ok("GET", "/v1/events")["events"]]
    assert {event["actor"] for event in events} == {"http:127.0.0.1"}
    registered = {event["op"] for event in events if event["kind"] in ("broker_registered", "topics_changed")}
    removed = {event["op"] for event in events if event["kind"] == "broker_removed"}
    assert len(registered) == len(removed) == 1
    assert registered != removed


def test_a_slave_learns_of_its_living_master(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker(haServerAddr="127.0.1.1:10912"))
    done = http.ok("POST", "/v1/brokers", a_slave())
    assert (done["masterAddr"], done["haServerAddr"]) == (MASTER, "127.0.1.1:10912")


def test_order_topics_are_answered_unless_switched_off(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    run(kv.put(keys, "ORDER_TOPIC_CONFIG", "TopicA", "broker-a:8", Origin("t-1", "job:test")), redis)
    assert http.ok("POST", "/v1/brokers", a_broker())["orderTopics"] == {"TopicA": "broker-a:8"}
    http.ok("PATCH", "/v1/settings", {"settings": {"returnOrderTopicConfigToBroker": False}})
    assert http.ok("POST", "/v1/brokers", a_broker())["orderTopics"] is None


@pytest.mark.parametrize(
    ("before", "body"),
    [
        pytest.param(
            [a_broker(dataVersion={"timestamp": 1, "stateVersion": 2})],
            a_broker(brokerAddr=SLAVE, dataVersion={"timestamp": 2, "stateVersion": 1}),
            id="an id whose holder has a higher state version",
        ),
    ],
)
def test_registrations_the_registry_refuses(http: Http, before: list[object], body: object) -> None:
    for registration in before:
        http.ok("POST", "/v1/brokers", registration)
    clusters = http.ok("GET", "/v1/clusters")
    assert http.refused("POST", "/v1/brokers", body) == (409, "registration-refused", None)
    assert http.ok("GET", "/v1/clusters") == clusters


@pytest.mark.parametrize(
    ("before", "body", "perms_after"),
    [
        pytest.param([], a_broker(topics=[{"topicName": "T"}]), {"T"}, id="a broker's first"),
        pytest.param(
            [a_broker()], a_slave(topics=[{"topicName": "T"}]), {"TopicA", "TopicB"}, id="a slave's"
        ),
    ],
)
def test_a_first_registration_may_have_a_single_topic(
    http: Http, before: list[object], body: object, perms_after: set[str]
) -> None:
    for registration in before:
        http.ok("POST", "/v1/brokers", registration)
    assert http.ok("POST", "/v1/brokers", body)["eventId"]
    assert set(perms(http)) == perms_after


def test_a_claimed_broker_is_busy(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    redis.set(keys.pending("broker-a"), "7")
    reply = http("POST", "/v1/brokers", a_broker())
    assert (reply.status, reply.json["type"]) == (503, "urn:redis-namesrv:broker-busy")
    assert reply.headers["Retry-After"] == "1"


@pytest.mark.parametrize("delete_missing", [False, True])
def test_topics_left_out_go_only_if_so_configured(http: Http, delete_missing: bool) -> None:
    http.ok("PATCH", "/v1/settings", {"settings": {"deleteTopicWithBrokerRegistration": delete_missing}})
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", a_broker(topics=[{"topicName": "TopicA"}], dataVersion={"timestamp": 2}))
    assert set(perms(http)) == ({"TopicA"} if delete_missing else {"TopicA", "TopicB"})


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        pytest.param({"filterServers": ["127.0.1.1:9"]}, ["127.0.1.1:9"], id="others replace them"),
        pytest.param({"filterServers": None}, ["127.0.1.1:8"], id="null leaves them"),
        pytest.param({"filterServers": []}, [], id="none removes them"),
        pytest.param({}, [], id="saying nothing means none"),
    ],
)
def test_filter_servers(http: Http, given: dict[str, Any], stored: list[str]) -> None:
    http.ok("POST", "/v1/brokers", a_broker(filterServers=["127.0.1.1:8"]))
    http.ok("POST", "/v1/brokers", a_broker(**given))
    assert http.ok("GET", "/v1/brokers/broker-a")["members"][0]["filterServers"] == stored


def test_a_heartbeat_renews_the_lease(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    age(redis, keys, f"c1:{MASTER}", 5000)
    renewed = http.ok("POST", HEARTBEAT, MEMBER)
    assert renewed == {
        "eventId": None,
        "dataVersion": {"stateVersion": 0, "timestamp": 1700000000000, "counter": 1},
    }
    assert http.ok("GET", "/v1/brokers/broker-a")["members"][0]["lease"]["remainingMillis"] > 110_000


def test_a_late_heartbeat_reinstates_the_broker(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    age(redis, keys, f"c1:{MASTER}", -1)
    assert http.refused("GET", "/v1/routes/TopicA") == (404, "topic-not-found", None)
    assert http.ok("POST", HEARTBEAT, MEMBER)["eventId"]
    assert http.ok("GET", "/v1/routes/TopicA")


@pytest.mark.parametrize(
    ("path", "member"),
    [
        pytest.param(HEARTBEAT, MEMBER | {"brokerAddr": SLAVE}, id="an unknown address"),
        pytest.param(HEARTBEAT, MEMBER | {"cluster": "c2"}, id="an unknown cluster"),
        pytest.param("/v1/brokers/broker-b/heartbeat", MEMBER, id="under another name"),
    ],
)
def test_a_heartbeat_registers_no_broker(http: Http, path: str, member: dict[str, str]) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", a_broker(brokerName="broker-b", brokerAddr="127.0.1.3:10911"))
    assert http.refused("POST", path, member) == (404, "broker-not-found", None)


def test_one_address_leaves_the_others(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", a_slave())
    assert http.ok("DELETE", LEAVE + MASTER)["eventId"]
    assert http.ok("GET", "/v1/routes/TopicA")["brokerDatas"][0]["brokerAddrs"] == {"1": SLAVE}
    assert http.refused("DELETE", LEAVE + MASTER) == (404, "broker-not-found", None)


def test_the_last_address_takes_its_topics_along(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("DELETE", LEAVE + MASTER)
    assert http.ok("GET", "/v1/topics")["topics"] == []
    assert http.ok("GET", "/v1/clusters")["clusters"] == []


def test_heartbeats_are_recorded_if_eventsHeartbeats_is_on(redis: redis_py.Redis, keys: Keys) -> None:
    keeping = Http(create_app(Options(events_heartbeats=True), redis=redis).test_client())
    keeping.ok("POST", "/v1/brokers", a_broker())
    keeping.ok("POST", HEARTBEAT, MEMBER)
    entries: Any = redis.xrange(keys.heartbeats)
    assert [(fields["broker"], fields["code"]) for _, fields in entries] == [
        ("broker-a", "103"),
        ("broker-a", "904"),
    ]


def test_write_permission_goes_and_comes_back(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    wiped = http.ok("POST", PERMISSION, {"writable": False})
    assert wiped["eventId"]
    assert wiped["topicCount"] == 2
    assert perms(http) == {"TopicA": 4, "TopicB": 4}
    assert http.ok("POST", PERMISSION, {"writable": False}) == {
        "eventId": None,
        "topicCount": 2,
        "drain": None,
    }
    http.ok("POST", PERMISSION, {"writable": True})
    assert perms(http) == {"TopicA": 6, "TopicB": 6}


def test_no_permission_of_an_unknown_broker(http: Http) -> None:
    assert http.refused("POST", PERMISSION, {"writable": True}) == (404, "broker-not-found", None)
