"""What changed between two times: what entries lead to, and the page."""

from typing import Any

import pytest
import redis as redis_py

from api.console import between
from api.console.net_changes import SUBJECTS, Net, actors, net
from mqpipeline.serving.publish import publish
from tests.api.console.page import assert_well_formed, page
from tests.api.http import MASTER, Http, a_broker
from tests.mqpipeline.serving.example import RUN, results

BY_NAME = {subject.name: subject for subject in SUBJECTS}
RW, R = "8,8,6,0", "8,8,4,0"


def entry(kind: str, **data: Any) -> dict[str, Any]:
    return {"kind": kind, "actor": "http:10.0.0.5:41210", "data": data}


def entered(broker: str, cluster: str = "c1", **addrs: str) -> dict[str, Any]:
    data = {"broker": broker, "id": 0, "addr": "h:1", "cluster": cluster, "addrs": addrs or {"0": "h:1"}}
    return entry("broker_registered", **data)


def gone(broker: str, cluster: str = "c1", **addrs: str) -> dict[str, Any]:
    return entry("broker_removed", broker=broker, id=0, addr="h:1", cluster=cluster, addrs=addrs)


def topics(*rows: list[Any]) -> dict[str, Any]:
    return entry("topics_changed", rows=list(rows))


def of(name: str, *oldest_first: dict[str, Any]) -> Net:
    return net(BY_NAME[name], oldest_first[::-1], 10)


def said(changes: Net) -> list[tuple[str, ...]]:
    return [(*one.key, one.verb, one.text) for one in changes.first]


@pytest.mark.parametrize(
    ("name", "entries", "changes", "as_before"),
    [
        pytest.param("brokers", [entered("b")], [("b", "0=h:1", "entered", "of c1")], 0, id="entered"),
        pytest.param("brokers", [gone("b")], [("b", "0=h:1", "left", "of c1")], 0, id="left"),
        pytest.param("brokers", [entered("b"), gone("b")], [], 1, id="came and went"),
        pytest.param("brokers", [gone("b"), entered("b")], [], 1, id="was started again"),
        pytest.param(
            "brokers", [gone("b"), entered("b", "c2")], [("b", "0=h:1", "moved", "of c2")], 0, id="moved"
        ),
        pytest.param(
            "attributes",
            [entry("broker_updated", broker="b", addr="h:1", zone="z", zone_before="")],
            [("b", "h:1", "zone", "changed", "none → z")],
            0,
            id="attribute",
        ),
        pytest.param(
            "topics",
            [topics(["b", "", RW, ["A", "B"]]), topics(["b", RW, R, ["A"]], ["c", R, "", ["C"]])],
            [
                ("A", "b", "added", "added 8/8 R--"),
                ("B", "b", "added", "added 8/8 RW-"),
                ("C", "c", "removed", "deleted, was 8/8 R--"),
            ],
            0,
            id="topics",
        ),
        pytest.param(
            "topics",
            [topics(["b", RW, R, ["A"]]), topics(["b", R, RW, ["A"]])],
            [],
            1,
            id="a permission taken and given back",
        ),
        pytest.param(
            "topics",
            [topics(["b", RW, R, ["A"]])],
            [("A", "b", "changed", "8/8 RW- -> 8/8 R--")],
            0,
            id="permission",
        ),
        pytest.param(
            "topics",
            [topics(["b", "", RW, ["A"]], ["c", "", RW, ["A"]]), gone("b")],
            [("A", "c", "added", "added 8/8 RW-")],
            1,
            id="topics of a broker that left",
        ),
        pytest.param(
            "topics",
            [topics(["b", "", RW, ["A"]]), gone("b", x="h:2")],
            [("A", "b", "added", "added 8/8 RW-")],
            0,
            id="topics of a broker that one member left",
        ),
        pytest.param(
            "topics",
            [gone("b"), topics(["b", "", RW, ["A"]])],
            [],
            0,
            id="topics of a broker that came back",
        ),
        pytest.param(
            "static",
            [entry("mappings_changed", rows=[["b", "S", None, {}]])],
            [("S", "b", "added", "")],
            0,
            id="static topic",
        ),
        pytest.param(
            "drains",
            [entry("drain_changed", broker="b", after={"owner": "al", "reason": "disk"})],
            [("b", "drained", "by al: disk")],
            0,
            id="drained",
        ),
        pytest.param(
            "kv",
            [
                entry("kv_changed", kv_ns="n", key="k", before="1", after="2"),
                entry("kv_changed", kv_ns="n", key="k", before="2"),
                entry("kv_changed", kv_ns="n", key="l", after_bytes=70000),
            ],
            [("n", "k", "removed", "was 1"), ("n", "l", "added", "70000")],
            0,
            id="KV",
        ),
        pytest.param(
            "settings",
            [
                entry("settings_changed", changes={"o": ["1", "2"]}),
                entry("settings_changed", changes={"p": "?"}),
            ],
            [("o", "changed", "1 → 2")],
            0,
            id="settings, one entry damaged",
        ),
    ],
)
def test_what_entries_lead_to(name: str, entries: list[Any], changes: list[Any], as_before: int) -> None:
    found = of(name, *entries)
    assert (said(found), found.as_before) == (changes, as_before)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("value", [None, "x", 0, [], [[]], [["b"]], {}, {"x": 1}])
def test_no_damaged_entry_ends_the_page(name: str, value: Any) -> None:
    for kind in BY_NAME[name].kinds:
        for field in ("broker", "rows", "changes", "before", "after", "kv_ns", "id", "zone_before"):
            whole = dict.fromkeys(("broker", "id", "addr", "cluster", "kv_ns", "key"), "x")
            of(name, entry(kind, **{**whole, field: value}))


def test_actors_are_counted_without_their_ports() -> None:
    names = ["http:h:1", "http:h:2", "wire:[::1]:9", "token:a:42", "http:user", None]
    found = [(one.name, one.entries) for one in actors([{"actor": name} for name in names])]
    assert found == [("http:h", 2), ("wire:[::1]", 1), ("token:a:42", 1), ("http:user", 1), ("", 1)]


def test_the_page_says_what_changed_and_leads_to_the_entries(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("PUT", "/v1/kv/app/colour", {"value": "green"})
    shown = page(http.client, "/console/events/between?last=hour")
    assert_well_formed(shown)
    assert "4 entries were read: all of this time." in shown.content
    assert f"entered broker-a 0={MASTER} of c1" in shown.content
    assert "2 added" in shown.content
    assert "app colour green" in shown.content
    assert "http:127.0.0.1 4 entries" in shown.content
    assert shown.links["http:127.0.0.1"].startswith("/console/events?actor=http%3A127.0.0.1&since=")
    assert shown.links["kv changed"].startswith("/console/events?kind=kv_changed&since=")
    assert page(http.client, shown.links["kv changed"]).classes.count("entry") == 1


def test_two_times_bound_what_is_compared(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    query = "since=2000-01-01T00:00&until=2001-01-01T00:00:00"
    shown = page(http.client, f"/console/events/between?{query}")
    assert "Nothing changed" in shown.content
    assert shown.values == {"since": "2000-01-01T00:00:00", "until": "2001-01-01T00:00:00"}


def test_without_times_it_asks_for_them(http: Http) -> None:
    shown = page(http.client, "/console/events/between")
    assert "Choose two times" in shown.content
    assert shown.links["Last hour"] == "/console/events/between?last=hour"


def test_times_in_the_wrong_order_are_refused(http: Http) -> None:
    shown = page(http.client, "/console/events/between?since=2001-01-01T00:00&until=2000-01-01T00:00")
    assert (shown.status, "until: before since" in shown.content) == (422, True)


def test_what_is_too_much_to_read_is_said(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        http.ok("PUT", f"/v1/kv/app/k{number}", {"value": "v"})
    monkeypatch.setattr(between, "FIRST_PAGE", 4)
    monkeypatch.setattr(between, "READ_S", 0)
    shown = page(http.client, "/console/events/between?last=hour")
    assert "This is only part of it: 4 entries were read, the newest of this time, back to" in shown.content
    assert "4 added" in shown.content
    whole = page(http.client, shown.link("Read up to 5 000"))
    assert "10 entries were read: all of this time." in whole.content
    for bound, most, read in (("ENTRIES_MOST", 6, 6), ("CHARACTERS_MOST", 1, 4)):
        with monkeypatch.context() as bounds:
            bounds.setattr(between, bound, most)
            bounded = page(http.client, whole.address)
        assert f"{read} entries were read" in bounded.content
        assert "Choose times that are nearer to one another" in bounded.content


def test_history_is_linked_where_the_pipeline_has_landed_it(http: Http, redis: redis_py.Redis) -> None:
    publish(redis, "default", RUN, results())
    late = page(http.client, "/console/events/between?last=hour")
    assert "history" not in late.links
    shown = page(http.client, "/console/events/between?since=2026-01-01T00:00:00Z&until=2026-01-01T00:30:00Z")
    assert shown.links["history"] == (
        "/console/history?ask=changes&from=2026-01-01T00%3A00%3A00Z&to=2026-01-01T00%3A30%3A00Z"
    )


def test_hostile_names_are_text(http: Http) -> None:
    name = '"><script>alert(1)</script>'
    http.ok("POST", "/v1/brokers", a_broker(brokerName=name, topics=[{"topicName": "<i>"}]))
    http.ok("PUT", "/v1/kv/%3Cb%3E/k", {"value": name})
    shown = page(http.client, "/console/events/between?last=hour")
    assert_well_formed(shown)
    assert shown.links["<i>"] == "/console/topics/%3Ci%3E"
    assert {"b", "i"}.isdisjoint(shown.tags[shown.tags.index("main") :])
