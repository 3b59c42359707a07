"""Which entries a filter wants, kind by kind, and damaged ones."""

import json
from typing import Any

import pytest

from registry.events.entry import Event, EventId, EventKind
from registry.events.filters import BROKERS, CLUSTERS, TOPICS, Filter

ROWS = [["b1", "", "8,8,6,0", ["T1", "a/b"]], ["b2", "8,8,6,0", "", ["T2"]]]
MAPPED = [["b1", "T1", None, {"topic": "T9", "bname": "b9"}]]
MEMBERS = {"0": {"cluster": "c2", "addr": "h:1"}}
DEEP = "[" * 5000


def event(kind: str, actor: str = "wire:10.0.0.5:41210", **fields: Any) -> Event:
    """Return an entry; structures become JSON."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    return Event(EventId(1), {"v": "1", "kind": kind, "actor": actor, **texts})


ENTRIES = {
    "registered": event(
        "broker_registered", cluster="c1", broker="b1", id="0", group_cluster="c0", addrs={"0": "h:1"}
    ),
    "updated": event("broker_updated", cluster="c1", broker="b1", filters=["f:1"], also=["b2"]),
    "topics": event("topics_changed", cluster="c1", rows=ROWS, count="3"),
    "topic deleted": event("topics_changed", topic="T3", rows=[["b1", "8,8,6,0", "", ["T3"]]], broker="b1"),
    "mappings": event("mappings_changed", cluster="c1", broker="b1", rows=MAPPED),
    "order": event("kv_changed", kv_ns="ORDER_TOPIC_CONFIG", key="T1", after="b1:4"),
    "other kv": event("kv_changed", kv_ns="n", key="T1", after="b1"),
    "settings": event("settings_changed", changes={"T1": ["b1", "c1"]}),
    "hold": event("hold_changed", after={"from_ms": 1, "until_ms": 2}),
    "drain": event("drain_changed", broker="b1", cluster="c1", after={"owner": "b2", "reason": "T1"}),
    "conflict": event("conflict_seen", broker="b1", holder={"broker": "b2", "brokers": ["b2", "b3"]}),
    "two clusters": event("conflict_seen", broker="b1", cluster="c1", holder={"cluster": "c2"}),
    "repaired": event("tables_repaired", brokers=["b1"], topics=["T1"], count="1"),
    "keys": event("tables_repaired", keys=["ns:{default}:route:T1"], count="1"),
    "round": event("checkpoint", scope="topics", broker="b1", rows=[["b1", "", "8,8,6,0", ["T1"]]]),
    "round kv": event("checkpoint", scope="kv", kv_ns="ORDER_TOPIC_CONFIG", values={"T1": "b1:4"}),
    "round members": event("checkpoint", scope="members", broker="b1", members=MEMBERS),
    "round end": event("checkpoint", scope="end", topics="1", brokers="1", members="1"),
    "unknown": event("news", about={"T1": ["b1", {"of": "c1"}]}),
}


def wanted(every: bool = True, **members: Any) -> set[str]:
    """Return the names of those entries that a filter wants."""
    asked = Filter(checkpoints=every, **members)
    return {name for name, one in ENTRIES.items() if asked.wants(one)}


def test_of_a_topic() -> None:
    assert wanted(topic="T1") == {
        *("topics", "mappings", "order", "repaired", "round", "round kv", "unknown"),
    }
    assert wanted(topic="T2") == {"topics"}
    assert wanted(topic="T3") == {"topic deleted"}
    assert wanted(topic="a/b") == {"topics"}
    assert wanted(topic="T9") == wanted(topic="T") == set()


def test_of_a_broker() -> None:
    assert wanted(broker="b1") == {
        *(
            "registered",
            "updated",
            "topics",
            "topic deleted",
            "mappings",
            "drain",
            "conflict",
            "two clusters",
        ),
        *("repaired", "round", "round members", "unknown"),
    }
    assert wanted(broker="b2") == {"updated", "topics", "conflict"}
    assert wanted(broker="b3") == {"conflict"}
    assert wanted(broker="b9") == wanted(broker="b") == set()


def test_of_a_cluster() -> None:
    assert wanted(cluster="c1") == {
        *("registered", "updated", "topics", "mappings", "drain", "two clusters", "unknown"),
    }
    assert wanted(cluster="c2") == {"two clusters", "round members"}
    assert wanted(cluster="c0") == {"registered"}


def test_of_kinds() -> None:
    rounds = {"round", "round kv", "round members", "round end"}
    assert wanted(every=False) == set(ENTRIES) - rounds
    assert wanted(every=False, kinds=frozenset({"checkpoint", "news"})) == {*rounds, "unknown"}
    assert wanted(every=False, kinds=frozenset({"checkpoint"}), topic="T1") == {"round", "round kv"}


@pytest.mark.parametrize(
    ("actor", "peer", "asked", "is_it"),
    [
        ("wire:10.0.0.5:41210", None, "wire:10.0.0.5:41210", True),
        ("wire:10.0.0.5:41210", None, "wire:10.0.0.5", True),
        ("wire:10.0.0.5:41210", None, "10.0.0.5", True),
        ("wire:10.0.0.5:41210", None, "wire", True),
        ("wire:10.0.0.50:41210", None, "10.0.0.5", False),
        ("wire:10.0.0.5:41210", None, "41210", False),
        ("wire:2001:db8::1:41210", None, "2001:db8::1", True),
        ("token:alice", "10.0.0.5:4711", "alice", True),
        ("token:alice", "10.0.0.5:4711", "10.0.0.5", True),
        ("job:expire", None, "job:expire", True),
        ("", None, "job", False),
    ],
)
def test_of_an_actor(actor: str, peer: str | None, asked: str, is_it: bool) -> None:
    entry = event("kv_changed", actor=actor, **({} if peer is None else {"peer": peer}))
    assert Filter(actor=asked).wants(entry) is is_it


@pytest.mark.parametrize(
    "text",
    ["T1", "[T1", '"T1"', '{"T1":1}', '[["b1"]]', f"T1{DEEP}", "T1\udcff", '["T1\udcff"]', f'{DEEP}"T1"'],
)
@pytest.mark.parametrize("kind", ["topics_changed", "mappings_changed", "tables_repaired"])
def test_a_damaged_field_with_the_name_is_wanted(kind: str, text: str) -> None:
    field = "topics" if kind == "tables_repaired" else "rows"
    assert Filter(topic="T1").wants(event(kind, **{field: text})) is ("T1" in text)
    assert not Filter(topic="T2").wants(event(kind, **{field: text}))


def test_a_round_with_what_is_nested_without_end() -> None:
    damaged = event("checkpoint", scope="kv", kv_ns="ORDER_TOPIC_CONFIG", values=f'{{"T1":{DEEP}')
    assert Filter(topic="T1", checkpoints=True).wants(damaged)


def test_a_topics_entry_without_rows_is_no_reason_to_fail() -> None:
    assert not Filter(topic="T1").wants(event("topics_changed", count="1"))
    assert Filter(topic="T1").wants(event("topics_changed", other="T1"))


def test_an_unknown_kind_with_what_is_no_json() -> None:
    assert Filter(topic="T1").wants(event("news", about="T1"))
    assert not Filter(topic="T1").wants(event("news", about=f"{DEEP}T1"))


@pytest.mark.parametrize("name", ["Tä", 'a"b', "a\\b", "a/b", "T1"])
def test_a_name_that_json_escapes(name: str) -> None:
    rows = [["b1", "", "8,8,6,0", [name]]]
    for text in (
        json.dumps(rows),
        json.dumps(rows, ensure_ascii=False),
        json.dumps(rows).replace("/", "\\/"),
    ):
        one, other = event("topics_changed", rows=text), event("topics_changed", rows="[]")
        asked = Filter(topic=name)
        assert asked.wants(one)
        assert asked.may_want("\n".join([*other.fields.values(), *one.fields.values()]))
        assert not asked.may_want("\n".join(other.fields.values()))


def test_a_look_at_many_passes_all_that_are_wanted() -> None:
    for members in (
        {"topic": "T1"},
        {"broker": "b2"},
        {"cluster": "c2"},
        {"actor": "10.0.0.5"},
        {"audited": True},
    ):
        asked = Filter(**members)
        for entry in ENTRIES.values():
            assert asked.may_want("\n".join(entry.fields.values())) or not asked.wants(entry)


def test_operators_entries() -> None:
    wipe = Event(EventId(1), {"kind": "topics_changed", "cause": "wipe"})
    assert Filter(audited=True).wants(wipe)
    assert Filter(audited=True).may_want("\n".join(wipe.fields.values()))
    assert wanted(audited=True) == {
        *("order", "other kv", "settings", "hold", "drain", "conflict", "two clusters"),
    }


def test_each_kind_is_known() -> None:
    for table in (TOPICS, BROKERS, CLUSTERS):
        assert set(table) <= set(EventKind)
