"""Pages of brokers: the list, one broker, and what an operator changes of it."""

from urllib.parse import quote

import pytest
import redis as redis_py

from api.app import create_app
from api.console import brokers
from registry.drivers import run
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Origin
from registry.registration.register import Registration, register
from tests.api.console.page import load, press
from tests.api.http import MASTER, SLAVE, Http, a_broker
from tests.api.test_brokers import set_lease

BROKER = "/console/brokers/broker-a"
HOSTILE = ("<script>alert(1)</script>\"'&", "a/b?c#d%25", "..", "=x", "名前", "{{name}}")
DRAIN = {"owner": "alice", "reason": "kernel <b>upgrade"}


@pytest.fixture
def reader(redis: redis_py.Redis) -> Http:
    """Return a client that may only read."""
    options = Options(access_admin="off", access_broker="off", access_config="off", access_audit="off")
    return Http(create_app(options, redis=redis).test_client())


def registered(http: Http, **members: object) -> None:
    http.ok("POST", "/v1/brokers", a_broker(**members))


def test_the_list_has_members_with_their_leases(http: Http) -> None:
    registered(http, zoneName="zone-1")
    registered(http, brokerAddr=SLAVE, brokerId=1, zoneName="zone-1")
    http.ok("PUT", "/v1/brokers/broker-a/drain", DRAIN)
    page = load(http, "/console/brokers")
    assert page.status == 200
    assert page.links["broker-a"] == BROKER
    for said in (f"master {MASTER} living,", f"slave 1 {SLAVE} living,", "drained", "c1", "zone-1"):
        assert said in page.text, said
    assert "1 of 2023-11-14 22:13:20 UTC" in page.text  # its data version
    assert f'aria-label="Lease of {MASTER}"' in page.html


@pytest.mark.parametrize(
    ("hold_ms", "said"),
    [pytest.param(None, "overdue not in routes", id="overdue"), pytest.param(30_000, "held for", id="held")],
)
def test_the_state_of_a_lease_is_said(
    http: Http, redis: redis_py.Redis, keys: Keys, hold_ms: int | None, said: str
) -> None:
    registered(http)
    end = set_lease(redis, keys, f"c1:{MASTER}", -10)
    if hold_ms is not None:
        redis.hset(keys.events_meta, mapping={"hold_from_ms": end - 60_000, "hold_until_ms": end + hold_ms})
    for path in ("/console/brokers", BROKER):
        assert said in load(http, path).text


def test_pages_of_the_list_keep_its_filter(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "LISTED", 2)
    for port in range(1, 5):
        registered(http, brokerName=f"b&-{port}", brokerAddr=f"127.0.1.1:{port}")
    registered(http, brokerName="b&-9", cluster="c2", brokerAddr="127.0.1.1:9")
    first = load(http, f"/console/brokers?prefix={quote('b&')}&cluster=c1")
    assert "Brokers on this page: 2" in first.text
    assert ("b&-2" in first.links, "b&-3" in first.links, "First page" in first.links) == (True, False, False)
    assert ("prefix", "b&") in first.form("Show").fields
    second = load(http, first.links["Next page"])
    assert ("b&-3" in second.links, "b&-4" in second.links, "b&-9" in second.links) == (True, True, False)
    assert "Next page" not in second.links
    assert load(http, second.links["First page"]).text == first.text


def test_clusters_are_offered(http: Http) -> None:
    registered(http)
    registered(http, brokerName="broker-b", cluster="c<2", brokerAddr=SLAVE)
    page = load(http, "/console/brokers?cluster=c%3C2")
    assert ("broker-a" in page.links, "broker-b" in page.links) == (False, True)
    assert "<option selected>c&lt;2</option>" in page.html
    assert "<option>c1</option>" in page.html


@pytest.mark.parametrize(
    ("query", "said"),
    [
        pytest.param("", "No broker has registered", id="none at all"),
        pytest.param("?prefix=x", "No broker is like this", id="none that begins so"),
        pytest.param("?cluster=x", "None of cluster x", id="none of a cluster"),
    ],
)
def test_an_empty_list_says_what_to_do(http: Http, query: str, said: str) -> None:
    assert said in load(http, f"/console/brokers{query}").text


def test_hostile_names_are_text_and_lead_to_their_broker(http: Http) -> None:
    for port, name in enumerate(HOSTILE, 1):
        registered(http, brokerName=name, cluster=name, brokerAddr=f"127.0.1.1:{port}", zoneName=name)
    page = load(http, "/console/brokers")
    assert "<script>alert" not in page.html
    for name in HOSTILE:
        followed = load(http, page.links[name])
        assert followed.status == 200
        assert f"{name} Members" in followed.text
        asked = press(http, followed, "Take it …")
        assert f"Take the write permission of {name}?" in asked.text
        assert "<script>alert" not in followed.html + asked.html


def test_an_empty_name_can_be_seen_and_followed(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    run(register(keys, Registration("c1", "", MASTER, 0), Origin("w1-1", "wire:127.0.1.1:1")), redis)
    page = load(http, "/console/brokers")
    assert page.links["\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"] == "/console/brokers/="
    assert (
        f"Members Address Role Lease Data version Since Connections {MASTER}"
        in load(http, "/console/brokers/=").text
    )


def test_a_broker_with_all_that_is_known_of_it(http: Http) -> None:
    registered(http, zoneName="zone-1", haServerAddr="127.0.1.1:10912", filterServers=["127.0.1.1:8"])
    registered(http, cluster="c2", brokerAddr=SLAVE, brokerId=3, zoneName="zone-1", enableActingMaster=True)
    page = load(http, BROKER)
    assert page.status == 200
    for said in (
        "master living,",
        "slave 3 living,",
        "HA 127.0.1.1:10912",
        "1 filter server",
        "none: by HTTP",
    ):
        assert said in page.text, said
    for said in (
        "Clusters c1, c2",
        "Zone zone-1",
        "Acting master enabled",
        "First registered from 127.0.0.1",
        "Epoch 1",
    ):
        assert said in page.text, said
    assert page.links["c2"] == "/console/brokers?cluster=c2"
    assert page.links["TopicA"] == "/console/topics/TopicA"
    assert page.links["All topics of topics"] == "/console/topics?broker=broker-a"
    assert page.links["Its events"] == "/console/events?broker=broker-a"


def test_the_live_part_of_a_broker_leaves_its_topics(http: Http) -> None:
    registered(http)
    page = load(http, BROKER, **{"HX-Request": "true"})
    assert MASTER in page.text
    assert "TopicA" not in page.text


def test_a_broker_of_many_members_is_bounded(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "MEMBERS", 2)
    for number in range(4):
        registered(http, brokerId=number, brokerAddr=f"127.0.1.1:{number + 1}")
    page = load(http, BROKER)
    assert "The first 2 of 4 members by id." in page.text
    assert "127.0.1.1:3" not in page.text


def test_a_broker_that_is_gone(http: Http) -> None:
    page = load(http, BROKER)
    assert page.status == 404
    assert "Not there no broker 'broker-a'" in page.text
    assert page.links["its events"] == "/console/events?broker=broker-a"
    assert not any(form.address.startswith(BROKER) for form in page.forms)


def test_write_permission_is_taken_and_given(http: Http) -> None:
    registered(http)
    asked = press(http, load(http, BROKER), "Take it …")
    assert "Topics whose routes change 1 TopicA" in asked.text
    assert http.ok("GET", "/v1/topics/TopicA")["queueDatas"][0]["perm"] == 6
    done = press(http, asked, "Take the permission")
    assert (done.address.partition("?")[0], "Done. Recorded as entry" in done.text) == (BROKER, True)
    assert http.ok("GET", "/v1/topics/TopicA")["queueDatas"][0]["perm"] == 4
    press(http, press(http, done, "Give read and write …"), "Give the permission")
    assert http.ok("GET", "/v1/topics/TopicB")["queueDatas"][0]["perm"] == 6


def test_one_address_is_unregistered(http: Http) -> None:
    registered(http)
    registered(http, brokerAddr=SLAVE, brokerId=1)
    page = load(http, BROKER)
    forms = [form for form in page.forms if form.address == f"{BROKER}/unregister"]
    assert [dict(form.fields)["address"] for form in forms] == [MASTER, SLAVE]
    asked = press(http, page, "Unregister …")  # of the first
    assert f"Unregister {MASTER}?" in asked.text
    assert len(http.ok("GET", "/v1/brokers/broker-a")["members"]) == 2
    press(http, asked, "Unregister it")
    assert [member["brokerAddr"] for member in http.ok("GET", "/v1/brokers/broker-a")["members"]] == [SLAVE]


@pytest.mark.parametrize("form", ["write-permission", "unregister", "drain", "undrain"])
def test_a_form_without_proof_changes_nothing(http: Http, form: str) -> None:
    registered(http)
    http.ok("PUT", "/v1/brokers/broker-a/drain", DRAIN)
    before = http.ok("GET", "/v1/events")["next"]
    fields = {"owner": "o", "reason": "r", "cluster": "c1", "address": MASTER, "confirmed": "1"}
    reply = http.client.post(f"{BROKER}/{form}", data=fields)
    assert (reply.status_code, "this form is of another session" in reply.text) == (403, True)
    assert http.ok("GET", "/v1/events")["next"] == before


def test_one_that_may_only_read_is_told_so_and_has_no_forms(http: Http, reader: Http) -> None:
    registered(http)
    page = load(reader, BROKER)
    assert (
        "You may read here. To drain the broker or change its permission needs the class admin, to unregister"
        in page.text
    )
    assert not any(form.address.startswith(BROKER) for form in page.forms)
    assert "Its events" not in page.links
    proof = dict(load(http, BROKER).form("Take it …").fields)
    reply = reader.client.post(
        f"{BROKER}/write-permission", data={**proof, "writable": "no", "confirmed": "1"}
    )
    assert (reply.status_code, "You may not see this" in reply.text) == (401, True)
    assert http.ok("GET", "/v1/topics/TopicA")["queueDatas"][0]["perm"] == 6


def test_a_member_that_a_mirror_keeps_says_of_whom(http: Http) -> None:
    mirrored = a_broker(mirroredFrom="10.0.0.1:9876", enableActingMaster=False)
    http.ok(
        "POST", "/v1/mirrored-brokers", {name: mirrored[name] for name in mirrored if name != "dataVersion"}
    )
    assert "mirrored" in load(http, "/console/brokers").text
    assert "unknown" in load(http, "/console/brokers").text  # its data version
    assert "1970" not in load(http, "/console/brokers/broker-a").text
    assert "mirrored from 10.0.0.1:9876" in load(http, "/console/brokers/broker-a").text
    registered(http)
    assert "mirrored" not in load(http, "/console/brokers").text
    assert "mirrored" not in load(http, "/console/brokers/broker-a").text
