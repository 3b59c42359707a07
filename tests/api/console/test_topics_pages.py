"""Topics: the search, the route of one, and what an operator changes of it."""

from urllib.parse import quote

import pytest
import redis as redis_py

from api.app import create_app
from api.console import topics
from registry.drivers import run
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Origin
from registry.registration.register import Registration, register
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody, encode_register_broker_body
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo
from rocketmq_remoting.version import CURRENT
from tests.api.console.page import load, press
from tests.api.http import MASTER, SLAVE, Http, a_broker

TOPIC = "/console/topics/TopicA"
HOSTILE = ("<script>alert(1)</script>\"'&", "a/b?c#d%25", "..", "=x", "%RETRY%名前", "{{name}}")
OTHER = a_broker(cluster="c2", brokerName="broker-b", brokerAddr=SLAVE, zoneName="zone-2")


def queues(http: Http, broker: str = "broker-a") -> dict[str, int]:
    data = http.ok("GET", "/v1/topics/TopicA")["queueDatas"]
    found: dict[str, int] = next(one for one in data if one["brokerName"] == broker)
    return found


def test_topics_are_searched_by_the_beginning_of_their_names(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", OTHER | {"topics": [{"topicName": "Orders"}]})
    page = load(http, "/console/topics")
    assert page.links.keys() >= {"Orders", "TopicA", "TopicB"}
    assert load(http, page.links["TopicA"]).status == 200
    assert 'hx-trigger="input changed delay:300ms"' in page.html  # while it is typed
    searched = load(http, "/console/topics?prefix=Topic")
    assert ("Orders" in searched.links, "TopicA" in searched.links) == (False, True)
    assert searched.form("Search").fields == [("prefix", "Topic"), ("cluster", "")]
    of_cluster = load(http, "/console/topics?cluster=c2")
    assert ("Orders" in of_cluster.links, "TopicA" in of_cluster.links) == (True, False)
    assert ("cluster", "c2") in of_cluster.form("Search").fields
    of_broker = load(http, "/console/topics?broker=broker-b")
    assert ("Orders" in of_broker.links, "TopicA" in of_broker.links) == (True, False)
    assert ("broker", "broker-b") in of_broker.form("Search").fields


def test_pages_of_topics_keep_the_search(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "LISTED", 2)
    names = ["%a&1", "%a&2", "%a&3", "z"]
    http.ok("POST", "/v1/brokers", a_broker(topics=[{"topicName": name} for name in names]))
    first = load(http, f"/console/topics?prefix={quote('%a&')}")
    second = load(http, first.links["Next page"])
    assert ("Topics on this page: 2" in first.text, "Topics on this page: 1" in second.text) == (True, True)
    assert ("%a&3" in second.links, "z" in second.links, "Next page" in second.links) == (True, False, False)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        pytest.param("", "There is no topic yet", id="none at all"),
        pytest.param("?prefix=x%2Fy", "No topic is like this", id="none that begins so"),
        pytest.param("?broker=x", "None of broker x", id="none of a broker"),
    ],
)
def test_no_topic(http: Http, query: str, said: str) -> None:
    page = load(http, f"/console/topics{query}")
    assert (page.status, said in page.text) == (200, True)
    if "prefix" in query:
        assert load(http, page.links["set its queues"]).form("Set …")


def test_a_search_of_odd_words_finds_nothing(http: Http) -> None:
    page = load(http, f"/console/topics?broker=x&after=%00&limit=none&prefix={'x' * 300}")
    assert (page.status, "No topic is like this" in page.text) == (200, True)


def test_the_route_is_a_picture_and_a_table(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", OTHER | {"brokerId": 1, "enableActingMaster": True})
    http.ok("PUT", "/v1/brokers/broker-a/drain", {"owner": "alice", "reason": "upgrade"})
    page = load(http, TOPIC)
    assert page.status == 200
    assert '<title id="route-title">Route of TopicA</title>' in page.html
    assert (
        "TopicA has queues on 2 brokers of 2 clusters; producers send to 0; 1 is drained; 1 has no master."
        in page.text
    )
    for said in ("drained, read only", "8 to read, 4 to write", f"master {MASTER}", f"slave 1 {SLAVE}"):
        assert said in page.text, said
    assert "Brokers 2 Producers send to 0 Queues to write 0 Queues to read 16" in page.text
    assert "Producers cannot send" in page.text
    assert "broker-a read only drained 8 4 c1 \N{EN DASH}" in page.text
    assert "broker-b read only no master 8 4 c2 zone-2" in page.text
    assert page.links["broker-b"] == "/console/brokers/broker-b"
    assert page.links["Its events"] == "/console/events?topic=TopicA"
    assert page.links["Its history"] == "/console/history?topic=TopicA"
    http.ok("DELETE", "/v1/brokers/broker-a/drain")
    assert "Producers cannot send" not in load(http, TOPIC).text


def test_the_table_of_a_long_route_is_in_pages(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "ROWS", 1)
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", OTHER)
    first = load(http, TOPIC)
    assert ("Change queues of broker-a" in first.html, "Change queues of broker-b" in first.html) == (
        True,
        False,
    )
    second = load(http, first.links["Next page"])
    assert ("Change queues of broker-a" in second.html, "Change queues of broker-b" in second.html) == (
        False,
        True,
    )


def test_order_configuration_and_mappings_are_mentioned(
    http: Http, redis: redis_py.Redis, keys: Keys
) -> None:
    mapping = {"TopicA": TopicQueueMappingInfo("TopicA", "broker-a", 4, {0: 1}, epoch=7)}
    config = {"TopicA": TopicConfig("TopicA"), "TopicB": TopicConfig("TopicB")}
    body = RegisterBrokerBody(
        DataVersion(0, 1, 1), config, frozenset(config), (), mapping, DataVersion(0, 1, 1)
    )
    encoded = encode_register_broker_body(body, version=CURRENT, compressed=False)
    registration = Registration("c1", "broker-a", MASTER, 0, version=CURRENT, body=encoded)
    run(register(keys, registration, Origin("w1-1", "wire:127.0.1.1:1")), redis)
    http.ok("PUT", "/v1/kv/ORDER_TOPIC_CONFIG/TopicA", {"value": "broker-a:8 <b>"})
    http.ok("PATCH", "/v1/settings", {"settings": {"orderMessageEnable": True}})
    page = load(http, TOPIC)
    assert "It is a static topic on 1 of these brokers" in page.text
    assert "Order configuration broker-a:8 <b>" in page.text
    assert "broker-a read and write static" in page.text


def test_hostile_names_are_text_and_lead_to_their_topic(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker(topics=[{"topicName": name} for name in HOSTILE]))
    page = load(http, "/console/topics")
    for name in HOSTILE:
        followed = load(http, page.links[name])
        assert (followed.status, f"Route of {name} {name} has queues on 1 broker" in followed.text) == (
            200,
            True,
        )
        asked = press(http, followed, "Delete …")
        assert f"Delete {name} from all clusters?" in asked.text
        assert "<script>alert" not in page.html + followed.html + asked.html


def test_queues_are_set_on_a_broker_and_other_bits_stay(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    stored = {"readQueueNums": 8, "writeQueueNums": 4, "perm": 6 + 8, "topicSysFlag": 3}
    http.ok("PUT", "/v1/topics/TopicA", {"queueDatas": [{"brokerName": "broker-a", **stored}]})
    page = load(http, load(http, TOPIC).links["Change"])
    form = dict(page.form("Set …").fields)
    assert (form["broker"], form["read"], form["write"], form["perm"]) == ("broker-a", "8", "4", "6")
    asked = press(http, page, "Set …", write="12", perm="2")
    assert (
        "8 queues to read, 12 to write, write only, until the broker registers changed topics." in asked.text
    )
    assert queues(http).items() >= stored.items()
    done = press(http, asked, "Set it")
    assert "Done. Recorded as entry" in done.text
    after = {"readQueueNums": 8, "writeQueueNums": 12, "perm": 2 + 8, "topicSysFlag": 3}
    assert queues(http).items() >= after.items()


def test_what_a_drain_hides_is_not_taken_for_what_is_stored(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("PUT", "/v1/brokers/broker-a/drain", {"owner": "alice", "reason": "upgrade"})
    page = load(http, f"{TOPIC}?broker=broker-a")
    assert dict(page.form("Set …").fields)["perm"] == ""  # the operator has to choose
    refused = press(http, page, "Set …")
    assert (refused.status, "perm: not a whole number" in refused.text) == (422, True)
    assert "It is drained: routes show no write permission there" in press(http, page, "Set …", perm="6").text


@pytest.mark.parametrize(
    ("field", "value", "status", "said"),
    [
        pytest.param("broker", "none", 422, "no broker 'none'", id="an unknown broker"),
        pytest.param("read", "-1", 422, "read: not a whole number", id="a negative number"),
        pytest.param("write", "2147483648", 422, "writeQueueNums", id="one that is too large"),
        pytest.param("perm", "x", 422, "perm: not a whole number", id="no number"),
    ],
)
def test_queues_that_make_no_sense_are_named(
    http: Http, field: str, value: str, status: int, said: str
) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    page = press(http, load(http, f"{TOPIC}?broker=broker-a"), "Set …", **{field: value})
    assert (page.status, said in page.text) == (status, True)


def test_a_topic_that_is_not_there_can_be_set_on_a_broker(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    page = load(http, "/console/topics/New")
    assert (page.status, "Not there" in page.text) == (404, True)
    assert not any("Delete …" in form.buttons for form in page.forms)
    done = press(http, press(http, page, "Set …", broker="broker-a"), "Set it")
    assert (done.status, "broker-a read and write 16 16 c1" in done.text) == (200, True)


@pytest.mark.parametrize(("cluster", "left"), [("c1", ["broker-b"]), ("", [])])
def test_a_topic_is_deleted_of_one_cluster_or_all(http: Http, cluster: str, left: list[str]) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", OTHER)
    asked = press(http, load(http, TOPIC), "Delete …", cluster=cluster)
    assert f"Delete TopicA from {'cluster c1' if cluster else 'all clusters'}?" in asked.text
    assert len(http.ok("GET", "/v1/topics/TopicA")["queueDatas"]) == 2
    done = press(http, asked, "Delete it")
    assert "Done. Recorded as entry" in done.text
    assert [data["brokerName"] for data in _queue_datas(http)] == left


def _queue_datas(http: Http) -> list[dict[str, object]]:
    reply = http("GET", "/v1/topics/TopicA")
    found: list[dict[str, object]] = reply.json["queueDatas"] if reply.status == 200 else []
    return found


@pytest.mark.parametrize("form", ["queues", "delete"])
def test_a_form_without_proof_changes_nothing(http: Http, form: str) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    before = http.ok("GET", "/v1/events")["next"]
    fields = {"broker": "broker-a", "read": "1", "write": "1", "perm": "2", "confirmed": "1"}
    reply = http.client.post(f"{TOPIC}/{form}", data=fields)
    assert (reply.status_code, "this form is of another session" in reply.text) == (403, True)
    assert http.ok("GET", "/v1/events")["next"] == before


def test_one_that_may_only_read_is_told_so_and_has_no_forms(http: Http, redis: redis_py.Redis) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    reader = Http(create_app(Options(access_admin="off", access_audit="off"), redis=redis).test_client())
    page = load(reader, TOPIC)
    assert "You may read here. To set queues or delete the topic needs the class admin." in page.text
    assert ("Change" in page.links, "Its history" in page.links) == (False, False)
    assert not any(form.address.startswith(TOPIC) for form in page.forms)
