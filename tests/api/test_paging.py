"""Lists in pages: each item once, in a stable order, whatever changes meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest

from api.paging import PageQuery, page
from registry.events.pages import ENTRIES_AT_ONCE
from tests.api.http import Http, a_broker

LISTED: dict[str, tuple[str, Callable[[Any], str]]] = {
    "clusters": ("clusters", lambda one: str(one["cluster"])),
    "brokers": ("brokers", lambda one: str(one["brokerName"])),
    "drains": ("drains", lambda one: str(one["brokerName"])),
    "topics": ("topics", str),
    "kv": ("namespaces", str),
    "kv/n": ("table", str),
}


def add(http: Http, subject: str, name: str, port: int) -> None:
    match subject:
        case "clusters" | "brokers":
            http.ok(
                "POST", "/v1/brokers", a_broker(cluster=name, brokerName=name, brokerAddr=f"127.0.1.1:{port}")
            )
        case "drains":
            add(http, "brokers", name, port)
            http.ok("PUT", f"/v1/brokers/{name}/drain", {"owner": "alice", "reason": "upgrade"})
        case "topics":
            http.ok("POST", "/v1/brokers", a_broker(brokerName="a", topics=[]))
            http.ok("PUT", f"/v1/topics/{name}", {"queueDatas": [{"brokerName": "a"}]})
        case "kv":
            http.ok("PUT", f"/v1/kv/{name}/k", {"value": "v"})
        case _:
            http.ok("PUT", f"/v1/{subject}/{name}", {"value": "v"})


@pytest.mark.parametrize("subject", list(LISTED))
def test_pages_join_to_the_whole(http: Http, subject: str) -> None:
    names = [f"name-{i}" for i in range(5)]
    for port, name in enumerate(reversed(names), 1):
        add(http, subject, name, port)
    member, name_of = LISTED[subject]
    listed: list[str] = []
    after: str | None = ""
    while after is not None:
        reply = http.ok("GET", f"/v1/{subject}?limit=2&after={after}")
        assert len(reply[member]) <= 2
        listed += map(name_of, reply[member])
        after = reply["next"]
    assert listed == names


@pytest.mark.parametrize(
    ("after", "limit", "listed", "following"),
    [
        pytest.param("", 2, "bd", "d", id="the first page"),
        pytest.param("d", 2, "fh", None, id="a last page that is full"),
        pytest.param("c", 2, "df", "f", id="after a name that is gone"),
        pytest.param("h", 2, "", None, id="after the last"),
        pytest.param("", 9, "bdfh", None, id="all of it"),
    ],
)
def test_a_page(after: str, limit: int, listed: str, following: str | None) -> None:
    assert page(set("bdfh"), PageQuery(after=after, limit=limit)) == (tuple(listed), following)


def test_the_event_stream_in_pages(http: Http) -> None:
    assert http.ok("GET", "/v1/events") == {"events": [], "next": None, "more": False}
    http.ok("POST", "/v1/brokers", a_broker())
    first = http.ok("GET", "/v1/events?limit=2")
    rest = http.ok("GET", f"/v1/events?after={first['next']}")
    assert [event["fields"]["kind"] for event in first["events"]] == ["stream_started", "broker_registered"]
    assert first["events"][1]["fields"]["id"] == "0"
    assert [event["fields"]["kind"] for event in rest["events"]] == ["topics_changed"]
    assert rest["next"] == rest["events"][-1]["id"]
    assert http.ok("GET", f"/v1/events?after={rest['next']}") == {
        "events": [],
        "next": rest["next"],
        "more": False,
    }


def test_a_page_of_long_events_ends_sooner(http: Http) -> None:
    for number in range(40):
        http.ok("PUT", "/v1/kv/ns/key", {"value": chr(97 + number % 2) * 60_000})
    first = http.ok("GET", "/v1/events?limit=1000")
    rest = http.ok("GET", f"/v1/events?limit=1000&after={first['next']}")
    assert len(first["events"]) == ENTRIES_AT_ONCE
    assert [int(event["fields"]["seq"]) for event in first["events"] + rest["events"]] == [*range(1, 42)]


def test_a_write_returns_its_last_event(http: Http) -> None:
    written = http.ok("POST", "/v1/brokers", a_broker())["eventId"]
    assert http.ok("GET", "/v1/events")["next"] == written
