"""Which entries a watcher wants, and which brokers hold the topic that it watches."""

from typing import Any

import pytest

from registry.events.entry import EventKind
from registry.events.watched import NamedEntry as Entry
from registry.events.watched import Wanted, holders_after
from tests.registry.test_event_filters import ENTRIES, event

B1, B2 = frozenset({"b1"}), frozenset({"b2"})


def wanted_of(wanted: Wanted, holders: frozenset[str] | None = frozenset()) -> set[str]:
    return {name for name, one in ENTRIES.items() if wanted.wants(Entry(one), holders)}


def rows(*changes: tuple[str, str, str, list[str]], **fields: Any) -> Entry:
    return Entry(event("topics_changed", rows=list(changes), **fields))


def test_a_watcher_of_everything_gets_every_entry() -> None:
    assert wanted_of(Wanted()) == set(ENTRIES)


@pytest.mark.parametrize(
    "wanted",
    [Wanted(topic="T1"), Wanted(broker="b1"), Wanted(actor="wire")],
    ids=["topic", "broker", "actor"],
)
def test_entries_of_checkpoint_rounds_repeat_what_is_there(wanted: Wanted) -> None:
    assert "round" not in wanted_of(wanted)
    assert "round" in wanted_of(Wanted(frozenset({"checkpoint"}), topic=wanted.topic, broker=wanted.broker))


def test_a_watcher_of_a_topic_gets_changes_of_the_brokers_that_hold_it() -> None:
    of_brokers = {"registered", "updated", "drain"}
    named = {"topics", "mappings", "order", "repaired"}
    assert wanted_of(Wanted(topic="T1")) & (of_brokers | named) == named
    assert wanted_of(Wanted(topic="T1"), B1) & (of_brokers | named) == of_brokers | named
    assert "registered" not in wanted_of(Wanted(topic="T1"), B2)


def test_where_the_holders_are_not_known_any_broker_may_be_one() -> None:
    assert {"registered", "drain"} <= wanted_of(Wanted(topic="T9"), None)
    assert "conflict" not in wanted_of(Wanted(topic="T9"), None)  # it changes no route


def test_all_that_a_watcher_asks_has_to_hold() -> None:
    assert wanted_of(Wanted(frozenset({"broker_registered", "drain_changed"}), broker="b1")) == {
        "registered",
        "drain",
    }
    assert wanted_of(Wanted(cluster="c1", broker="b2")) == {"updated", "topics", "unknown"}
    assert wanted_of(Wanted(actor="wire:10.0.0.6")) == set()


@pytest.mark.parametrize(
    "damaged",
    [event("topics_changed", rows="["), event("a_later_kind", broker="x"), event("mappings_changed")],
    ids=["no JSON", "unknown kind", "without rows"],
)
def test_an_entry_whose_names_cannot_be_read_may_name_anything(damaged: Any) -> None:
    assert Wanted(topic="T1", broker="b1").wants(Entry(damaged), frozenset())
    assert holders_after(B1, "T1", [Entry(damaged)]) is None


def test_rows_say_which_brokers_hold_a_topic() -> None:
    enters = rows(("b1", "", "8,8,6,0", ["T1", "T2"]))
    changes = rows(("b1", "8,8,6,0", "4,4,6,0", ["T1"]))
    leaves = rows(("b2", "8,8,6,0", "", ["T1"]), ("b1", "8,8,6,0", "", ["T2"]))
    assert holders_after(frozenset(), "T1", [enters, changes]) == B1
    assert holders_after(B1 | B2, "T1", [leaves]) == B1
    assert holders_after(B1, "T2", [leaves]) == frozenset()


def test_a_broker_that_left_holds_its_topics_until_it_comes_as_another_one() -> None:
    left = Entry(event("broker_removed", broker="b1", cause="expired"))
    back = Entry(event("broker_registered", broker="b1", cause="revive"))
    new = Entry(event("broker_registered", broker="b1", cause="first"))
    assert holders_after(B1, "T1", [left, back]) == B1
    assert holders_after(B1, "T1", [left, new]) == frozenset()
    assert holders_after(B1, "T1", [new, rows(("b1", "", "8,8,6,0", ["T1"]))]) == B1


@pytest.mark.parametrize("kind", [EventKind.STREAM_STARTED, EventKind.TABLES_REPAIRED])
def test_behind_some_entries_only_the_tables_know(kind: str) -> None:
    assert holders_after(B1, "T1", [Entry(event(kind))]) is None


def test_a_round_restates_rows() -> None:
    restated = Entry(event("checkpoint", scope="topics", broker="b2", rows=[["b2", "", "8,8,6,0", ["T1"]]]))
    infos = Entry(
        event("checkpoint", scope="mappings", broker="b2", rows=[["b2", "T1", None, {"topic": "T1"}]])
    )
    assert holders_after(B1, "T1", [restated]) == B1 | B2
    assert holders_after(B1, "T1", [infos]) == B1
