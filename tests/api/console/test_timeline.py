"""Pages of events and of the audit."""

import fakeredis
import pytest
import redis as redis_py

from api.app import create_app
from registry.events import pages
from registry.options.catalogue import Options
from tests.api.console.page import assert_well_formed, page
from tests.api.http import Http, a_broker

HOSTILE = '"><script>alert(1)</script>'


def put(http: Http, *keys: str) -> None:
    for key in keys:
        assert http("PUT", f"/v1/kv/app/{key}", {"value": "v"}).status == 200


def test_an_entry_is_said_as_mqns_says_it_with_links_to_what_it_names(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    shown = page(http.client, "/console/events")
    assert_well_formed(shown)
    assert "broker registered first broker-a 0=127.0.1.1:10911 of c1 entered" in shown.content
    assert "TopicA on broker-a: added 8/4 RW-" in shown.content
    assert shown.links["broker-a"] == "/console/brokers/broker-a"
    assert shown.links["TopicA"] == "/console/topics/TopicA"
    assert shown.links["c1"] == "/console/brokers?cluster=c1"
    assert "http:127.0.0.1" in shown.content


def test_entries_of_one_operation_stand_together(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    put(http, "k")
    assert page(http.client, "/console/events").classes.count("joined") >= 1
    assert page(http.client, "/console/audit").classes.count("joined") == 0


def test_the_newest_comes_first_and_pages_lead_on_to_the_oldest(http: Http) -> None:
    put(http, *(f"k{number}" for number in range(60)))
    first = page(http.client, "/console/events?kind=kv_changed")
    assert first.content.index("app k59:") < first.content.index("app k58:")
    assert first.classes.count("entry") == 50
    rest = page(http.client, first.links["Next page"])
    assert rest.classes.count("entry") == 10
    assert "app k0:" in rest.content
    assert "This is the first that the stream has" in rest.content
    assert "live" in first.ids
    assert "live" not in rest.ids
    assert rest.links["First page"] == "/console/events?kind=kv_changed"


def test_a_filter_stays_in_the_form(http: Http) -> None:
    query = (
        "kind=kv_changed&broker=b&topic=t&cluster=c&actor=token:x&since=2026-01-01T00:00&until=1767229200001"
    )
    shown = page(http.client, f"/console/events?{query}")
    assert shown.values == {
        "selected": "kv_changed",
        "broker": "b",
        "topic": "t",
        "cluster": "c",
        "actor": "token:x",
        "since": "2026-01-01T00:00:00",
        "until": "2026-01-01T01:00:01",
    }
    assert "No entry matches." in shown.content
    assert shown.links["Clear"] == "/console/events"


@pytest.mark.parametrize(
    ("query", "entries"),
    [
        ("kind=kv_changed", 1),
        ("kind=kv_changed,broker_registered", 2),
        ("broker=broker-a", 2),
        ("topic=TopicB", 1),
        ("cluster=c2", 0),
        ("actor=http", 4),
        ("since=2000-01-01T00:00&until=2001-01-01T00:00", 0),
    ],
)
def test_a_filter_shows_what_it_asks_for(http: Http, query: str, entries: int) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    put(http, "k")
    assert page(http.client, f"/console/events?{query}").classes.count("entry") == entries


def test_the_topic_of_the_filter_comes_first_in_words(http: Http) -> None:
    topics = [{"topicName": f"T{number}"} for number in range(9)]
    http.ok("POST", "/v1/brokers", a_broker(topics=topics))
    shown = page(http.client, "/console/events?topic=T8")
    assert "T8, T0, T1, 6 more on broker-a" in shown.content


def test_all_fields_can_be_opened_long_ones_in_part(http: Http) -> None:
    assert http("PUT", "/v1/kv/app/long", {"value": "x" * 700}).status == 200
    shown = page(http.client, "/console/events?kind=kv_changed")
    assert f"after {'x' * 500} … 700 characters" in shown.content
    assert "x" * 501 not in shown.content
    assert "details" in shown.tags


def test_a_time_that_is_none_is_refused_by_its_field(http: Http) -> None:
    shown = page(http.client, "/console/events?since=yesterday")
    assert shown.status == 422
    assert "since: 'yesterday' is neither Unix ms nor a time" in shown.content
    assert shown.values["since"] == ""


def test_a_page_that_was_not_all_looked_at_says_how_far_and_leads_on(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(http, "rare", *(f"k{number}" for number in range(200)))
    monkeypatch.setattr(pages, "EXAMINED_ENTRIES", 100)
    shown = page(http.client, "/console/events?kind=kv_changed&topic=none")
    assert "No entry matches as far as was looked." in shown.content
    assert "Looked back to" in shown.content
    assert "Next page" not in shown.links
    further = page(http.client, shown.links["look further back"])
    assert further.status == 200
    assert "after=" in further.address


def test_what_a_hostile_peer_names_is_text(http: Http) -> None:
    http.ok(
        "POST", "/v1/brokers", a_broker(brokerName=HOSTILE, cluster="<b>", topics=[{"topicName": "a/b?<i>"}])
    )
    assert http("PUT", "/v1/kv/app/k", {"value": HOSTILE}).status == 200
    shown = page(http.client, "/console/events")
    assert_well_formed(shown)
    assert shown.links["a/b?<i>"] == "/console/topics/a%2Fb%3F%3Ci%3E"
    assert "/console/brokers/%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E" in shown.links.values()
    assert {"b", "i"}.isdisjoint(shown.tags[shown.tags.index("main") :])


def test_an_entry_of_another_program_is_shown_by_its_fields(http: Http, redis: redis_py.Redis) -> None:
    redis.xadd("ns:{default}:events", {"kind": "topics_changed", "rows": "{", "seq": "x"})
    redis.xadd("ns:{default}:events", {"news": "n"})
    shown = page(http.client, "/console/events")
    assert 'rows="{"' in shown.content
    assert 'no kind news="n"' in shown.content
    assert "no actor" in shown.content


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/console/events", "Nothing has been recorded yet."),
        ("/console/audit", "No operator has changed anything yet"),
        ("/console/events?broker=b", "No entry matches."),
    ],
)
def test_what_is_empty_says_so(http: Http, path: str, words: str) -> None:
    assert words in page(http.client, path).content


def test_the_audit_has_the_actor_before_what_was_done(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    put(http, "k")
    shown = page(http.client, "/console/audit")
    assert_well_formed(shown)
    assert shown.classes.count("entry") == 1
    assert shown.content.index("http:127.0.0.1") < shown.content.index("kv changed put")


@pytest.mark.parametrize("path", ["/console/events", "/console/audit", "/console/events/between?last=hour"])
def test_a_store_that_is_away_is_said(storeless: Http, path: str) -> None:
    shown = page(storeless.client, path)
    assert_well_formed(shown)
    assert shown.status == 503
    assert "The store is away" in shown.content


@pytest.mark.parametrize("path", ["/console/events", "/console/audit", "/console/events/between?last=hour"])
def test_a_caller_without_the_class_is_denied(path: str) -> None:
    store = fakeredis.FakeRedis(decode_responses=True)
    http = Http(create_app(Options(access_audit="off"), redis=store).test_client())
    shown = page(http.client, path)
    assert shown.status == 401
    assert "You may not see this" in shown.content
