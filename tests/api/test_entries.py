"""Entries of the event stream and of operators over HTTP: decoded, filtered, from both ends, damaged ones too."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis as redis_py

from api.times import format_time
from mqnamesrv.store import EmbeddedStore
from registry.drivers import run
from registry.events import pages
from registry.events.checkpoint import checkpoint
from registry.events.trim import trim
from registry.keys import Keys
from registry.plans import Origin
from tests.api.http import MASTER, SLAVE, Http, a_broker

JOB = Origin("op", "job:test")
PATHS = ("/v1/events", "/v1/audit")
VALUES = (
    *(
        b"",
        b"x",
        b"9" * 400,
        b"-1",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"null",
        b"[" * 3000,
        b'{"a":1e999}',
        b"\x00\x1b[31m",
    ),
    *(b"[" + b"9" * 30 + b"]", b'[["broker-a"]]', b'{"broker":["x"]}', b"Topic" * 50_000),
)


@pytest.fixture
def history(http: Http, redis: Any, keys: Keys) -> Http:
    """Return a client of a namespace in which one thing of each usual sort has happened."""
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", a_broker(brokerAddr=SLAVE, brokerId=1, zoneName="z"))
    http.ok("PUT", "/v1/brokers/broker-a/drain", {"owner": "ops", "reason": "disk"})
    http.ok("PUT", "/v1/topics/TopicC", {"queueDatas": [{"brokerName": "broker-a"}]})
    http.ok("PUT", "/v1/kv/ORDER_TOPIC_CONFIG/TopicA", {"value": '{"a":1}'})
    http.ok("PATCH", "/v1/settings", {"settings": {"orderMessageEnable": True}})
    http.ok("DELETE", f"/v1/brokers/broker-a?cluster=c1&brokerAddr={SLAVE}")
    http.ok("POST", "/v1/events/checkpoints", {})
    run(checkpoint(keys, JOB, slices=100), redis)
    return http


def kinds(http: Http, query: str, path: str = "/v1/events") -> list[str]:
    return [entry["kind"] for entry in http.ok("GET", f"{path}?{query}")["events"]]


def test_entries_are_decoded_beside_their_fields(history: Http) -> None:
    entries = {entry["kind"]: entry for entry in history.ok("GET", "/v1/events?order=asc")["events"]}
    registered = entries["broker_registered"]
    assert registered["fields"]["addrs"] == json.dumps(registered["data"]["addrs"], separators=(",", ":"))
    assert registered["data"]["addrs"] == {"0": MASTER, "1": SLAVE}
    assert registered["data"]["id"] == 1
    assert registered["atMillis"] == int(registered["id"].partition("-")[0])
    assert (registered["inc"], str(registered["seq"])) == (
        int(registered["fields"]["inc"]),
        registered["fields"]["seq"],
    )
    assert (registered["cause"], registered["peer"]) == ("join", None)
    assert registered["actor"].startswith("http")
    assert entries["topics_changed"]["data"]["rows"] == [["broker-a", "", "16,16,6,0", ["TopicC"]]]
    drained = entries["drain_changed"]
    since_ms = drained["data"]["after"].pop("since_ms")
    assert registered["atMillis"] <= since_ms <= drained["atMillis"]
    assert drained["data"]["after"] == {"owner": "ops", "reason": "disk"}
    assert entries["kv_changed"]["data"]["after"] == '{"a":1}', "text, whatever it holds"
    assert entries["settings_changed"]["data"]["changes"] == {"orderMessageEnable": [None, "true"]}


def test_all_that_a_name_server_writes_is_decoded(history: Http) -> None:
    undecoded = {
        (entry["kind"], name)
        for entry in history.ok("GET", "/v1/events?limit=1000")["events"]
        for name, value in entry["data"].items()
        if isinstance(value, str) and value[:1] in ("[", "{")
    }
    assert undecoded == {("kv_changed", "after")}


def test_a_consumer_of_0_1_reads_what_it_read(history: Http, redis: Any, keys: Keys) -> None:
    """Oldest first, checkpoint entries too, `fields` as they are written, `next` where to go on."""
    stream = redis.xrange(keys.events)
    first = history.ok("GET", "/v1/events?limit=4")
    rest = history.ok("GET", f"/v1/events?limit=1000&after={first['next']}")
    assert [(e["id"], e["fields"]) for e in first["events"] + rest["events"]] == stream
    assert rest["next"] == stream[-1][0]
    assert history.ok("GET", f"/v1/events?after={rest['next']}")["next"] == rest["next"]
    assert "checkpoint" in {entry["kind"] for entry in rest["events"]}


@pytest.mark.parametrize(
    ("query", "listed"),
    [
        ("topic=TopicC", ["topics_changed"]),
        ("topic=TopicA", ["topics_changed", "kv_changed"]),
        ("topic=TopicA&kind=kv_changed", ["kv_changed"]),
        ("broker=broker-a&kind=broker_removed,drain_changed", ["drain_changed", "broker_removed"]),
        ("cluster=c1&kind=broker_registered", ["broker_registered"] * 2),
        ("kind=checkpoint&topic=TopicA", ["checkpoint"] * 2),
        ("actor=job", []),
        ("actor=job&kind=checkpoint&limit=1", ["checkpoint"]),
        ("order=desc&limit=2", ["broker_removed", "settings_changed"]),
        ("kind=none", []),
    ],
)
def test_filters(history: Http, query: str, listed: list[str]) -> None:
    assert kinds(history, query) == listed


def test_operators_entries(history: Http, redis: Any, keys: Keys) -> None:
    listed = ["drain_changed", "topics_changed", "kv_changed", "settings_changed"]
    assert kinds(history, "", "/v1/audit") == listed
    assert kinds(history, "order=desc", "/v1/audit") == listed[::-1]
    run(trim(keys, JOB, retention_ms=1, max_bytes=1 << 30), redis)
    redis.xtrim(keys.events, maxlen=0, approximate=False)
    assert kinds(history, "topic=TopicC", "/v1/audit") == ["topics_changed"]
    assert kinds(history, "", "/v1/audit") == listed


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_in_both_orders(history: Http, path: str, order: str) -> None:
    whole = history.ok("GET", f"{path}?order={order}&limit=1000")
    assert whole["more"] is False
    assert (whole["next"] is None) is (order == "desc")
    listed: list[Any] = []
    after = ""
    while True:
        page = history.ok("GET", f"{path}?order={order}&limit=3{after}")
        listed += page["events"]
        if not page["more"]:
            break
        after = f"&after={page['next']}"
    assert listed == whole["events"]
    assert len(listed) > 3


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_from_a_time_to_a_time(history: Http, order: str) -> None:
    ids = [entry["id"] for entry in history.ok("GET", f"/v1/events?order={order}")["events"]]
    times = [int(entry_id.partition("-")[0]) for entry_id in ids]
    since, until = sorted((times[2], times[-3]))
    expected = [entry_id for entry_id, ms in zip(ids, times, strict=True) if since <= ms <= until]
    for low, high in ((str(since), str(until)), (format_time(since), format_time(until))):
        page = history.ok("GET", f"/v1/events?order={order}&since={low}&until={high}")
        assert [entry["id"] for entry in page["events"]] == expected


def test_a_sparse_filter_goes_on_by_its_cursor(
    history: Http, redis: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "EXAMINED_ENTRIES", 40)
    for number in range(1000):
        redis.xadd(keys.events, {"kind": "news", "seq": str(number)})
    first = history.ok("GET", "/v1/events?order=desc&topic=TopicC")
    assert (first["events"], first["more"]) == ([], True)
    assert first["next"]
    found, after, asked = [], first["next"], 0
    while after is not None:
        page = history.ok("GET", f"/v1/events?order=desc&topic=TopicC&after={after}")
        found += page["events"]
        after, asked = page["next"], asked + 1
    assert [entry["kind"] for entry in found] == ["topics_changed"]
    assert asked > 3


def pages_of(http: Http, path: str, query: str) -> Iterator[Any]:
    """Yield the entries of page after page."""
    after = ""
    while True:
        page = http.ok("GET", f"{path}?{query}&limit=1000{after}")
        yield from page["events"]
        if not page["more"]:
            return
        after = f"&after={page['next']}"


@pytest.mark.parametrize("kind", ["topics_changed", "kv_changed", "conflict_seen", "checkpoint", "news"])
@pytest.mark.parametrize("path", PATHS)
def test_no_damage_hides_an_entry_or_fails(
    history: Http, store: EmbeddedStore, redis: Any, keys: Keys, path: str, kind: str
) -> None:
    """Each field of ours, and one of a name that is none, by values that no server writes."""
    names = sorted({name for _, fields in redis.xrange(keys.events) for name in fields} - {"kind"})
    stream = keys.events if path == "/v1/events" else keys.audit
    redis.delete(keys.events, keys.audit)
    with redis_py.Redis.from_url(store.url) as raw:
        for value in VALUES:
            for name in (*names, value):
                raw.xadd(stream, {"kind": kind, "seq": "1", "inc": "1", name: value})
            raw.xadd(stream, {"kind": value})
    ids = [entry_id for entry_id, _ in redis.xrange(stream)]
    unknown = "" if kind != "checkpoint" else f"&kind={kind}"
    assert len(ids) > 300
    for order in ("asc", "desc"):
        seen = [entry["id"] for entry in pages_of(history, path, f"order={order}")]
        if unknown:
            seen += [entry["id"] for entry in pages_of(history, path, f"order={order}{unknown}")]
        assert sorted(seen) == sorted(ids)
    for query in ("topic=Topic", "broker=x", "cluster=x", "actor=x", "topic=broker-a&order=desc"):
        assert len([*pages_of(history, path, query)]) < len(ids)
