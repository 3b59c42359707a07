"""Brokers that a mirror keeps registered by HTTP."""

import pytest
import redis as redis_py

from registry.keys import Keys
from tests.api.http import MASTER, Http, a_broker, a_mirrored

WHERE = "127.0.1.9:10911"
JAVA = "10.0.0.1:9876"
MEMBER = {"cluster": "c1", "brokerName": "broker-m", "brokerId": 0, "brokerAddr": WHERE}
REMOVE = f"/v1/mirrored-brokers?cluster=c1&brokerAddr={WHERE}&mirroredFrom="


def states(http: Http, *members: dict[str, object]) -> list[str]:
    answer: list[str] = http.ok("POST", "/v1/mirrored-brokers/heartbeats", {"members": members})["states"]
    return answer


def test_a_mirrored_broker_is_routed_to_and_shown_as_such(http: Http, redis: redis_py.Redis) -> None:
    assert http.ok("POST", "/v1/mirrored-brokers", a_mirrored())["eventId"]
    (data,) = http.ok("GET", "/v1/routes/TopicM")["brokerDatas"]
    assert data["brokerAddrs"] == {"0": WHERE}
    (member,) = http.ok("GET", "/v1/brokers/broker-m")["members"]
    assert (member["mirroredFrom"], member["lease"]["timeoutMillis"]) == (JAVA, 120_000)
    assert http.ok("POST", "/v1/mirrored-brokers", a_mirrored())["eventId"] is None
    entries: list[tuple[str, dict[str, str]]] = redis.xrange(Keys().events)  # type: ignore[assignment]
    assert [fields["cause"] for _, fields in entries] == ["empty_store", "mirror", "mirror"]
    assert {fields["actor"] for _, fields in entries} == {"http:127.0.0.1"}


def test_topics_that_are_not_given_go(http: Http) -> None:
    http.ok("POST", "/v1/mirrored-brokers", a_mirrored())
    http.ok("POST", "/v1/mirrored-brokers", a_mirrored(topics=[{"topicName": "Other"}]))
    assert http.ok("GET", "/v1/topics")["topics"] == ["Other"]


def test_what_registered_itself_is_refused_and_stays(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    body = a_mirrored(brokerName="broker-a", brokerAddr=MASTER)
    reply = http("POST", "/v1/mirrored-brokers", body)
    assert (reply.status, reply.json["type"]) == (409, "urn:redis-namesrv:own-registration")
    assert reply.json["detail"] == f"broker 'broker-a': {MASTER} of cluster 'c1' registered itself"
    own = MEMBER | {"brokerName": "broker-a", "brokerAddr": MASTER}
    http.ok("POST", "/v1/mirrored-brokers", a_mirrored())
    assert states(http, own, MEMBER, MEMBER | {"brokerId": 1}) == ["ownRegistration", "renewed", "unknown"]


def test_the_registration_of_the_broker_takes_the_mark_away(http: Http) -> None:
    http.ok("POST", "/v1/mirrored-brokers", a_mirrored())
    http.ok("POST", "/v1/brokers", a_broker(brokerName="broker-m", brokerAddr=WHERE))
    (member,) = http.ok("GET", "/v1/brokers/broker-m")["members"]
    assert member["mirroredFrom"] is None
    assert states(http, MEMBER) == ["ownRegistration"]
    assert http.ok("DELETE", REMOVE + JAVA)["eventId"] is None


def test_only_what_is_mirrored_from_these_name_servers_is_removed(http: Http) -> None:
    http.ok("POST", "/v1/mirrored-brokers", a_mirrored())
    assert http.ok("DELETE", f"{REMOVE}10.0.0.2:9876")["eventId"] is None
    assert http.ok("DELETE", REMOVE + JAVA)["eventId"]
    assert http("GET", "/v1/brokers/broker-m").status == 404


def test_a_heartbeat_of_a_mirrored_broker_says_that_it_has_to_register(http: Http) -> None:
    http.ok("POST", "/v1/mirrored-brokers", a_mirrored())
    member = {"cluster": "c1", "brokerAddr": WHERE}
    assert http.refused("POST", "/v1/brokers/broker-m/heartbeat", member)[:2] == (404, "broker-not-found")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (a_mirrored(mirroredFrom=""), "mirroredFrom"),
        (a_mirrored(brokerAddr="here"), "brokerAddr"),
        (a_mirrored(topics=[{"topicName": "a b"}]), "topics.0.topicName"),
        (a_mirrored(dataVersion={"timestamp": 1}), "dataVersion"),
    ],
)
def test_what_is_none_is_refused_by_its_name(http: Http, body: object, field: str) -> None:
    assert http.refused("POST", "/v1/mirrored-brokers", body) == (422, "invalid-field", field)


def test_more_members_than_a_request_may_have_are_refused(http: Http) -> None:
    body = {"members": [MEMBER] * 1001}
    assert http.refused("POST", "/v1/mirrored-brokers/heartbeats", body) == (422, "invalid-field", "members")
    assert states(http, *[MEMBER] * 1000) == ["unknown"] * 1000
    assert states(http) == []
