"""Which brokers hold watched topics: from the tables, then by the rows that pass by."""

from api.watchers.holders import Holders
from registry.events.watched import NamedEntry
from tests.registry.test_event_filters import event

B1, B2 = frozenset({"b1"}), frozenset({"b2"})
ENTERS = NamedEntry(event("topics_changed", rows=[["b2", "", "8,8,6,0", ["T1"]]]))
LEAVES = NamedEntry(event("topics_changed", rows=[["b1", "8,8,6,0", "", ["T1"]]]))


def watching(*topics: str) -> Holders:
    holders = Holders()
    for topic in topics:
        holders.watch(topic)
    return holders


def test_they_are_unknown_until_the_tables_are_read() -> None:
    holders = watching("T1")
    holders.watch(None)
    assert holders.unknown() == ("T1",)
    assert holders.pass_by([ENTERS]) == {"T1": None}
    holders.read("T1", B1)
    assert holders.unknown() == ()
    assert holders.pass_by([]) == {"T1": B1 | B2}


def test_a_group_concerns_those_who_hold_it_before_or_behind_it() -> None:
    holders = watching("T1")
    holders.read("T1", B1)
    assert holders.pass_by([LEAVES, ENTERS]) == {"T1": B1 | B2}
    assert holders.pass_by([]) == {"T1": B2}


def test_what_no_row_says_is_read_again() -> None:
    holders = watching("T1")
    holders.read("T1", B1)
    assert holders.pass_by([NamedEntry(event("tables_repaired", keys=["x"], count="1"))]) == {"T1": None}
    assert holders.unknown() == ("T1",)
    holders.read("T1", B2)
    holders.forget()
    assert holders.unknown() == ("T1",)


def test_only_topics_that_are_watched_are_kept() -> None:
    holders = watching("T1", "T1", "T2")
    holders.unwatch("T1")
    holders.unwatch("T2")
    holders.unwatch(None)
    assert holders.unknown() == ("T1",)
    holders.unwatch("T1")
    holders.read("T1", B1)
    assert holders.pass_by([ENTERS]) == {}


def test_a_broker_that_comes_as_another_one_no_longer_holds_it() -> None:
    holders = watching("T1", "T2")
    holders.read("T1", B1)
    holders.read("T2", B2)
    holders.pass_by([NamedEntry(event("broker_registered", broker="b1", cause="first"))])
    assert holders.pass_by([]) == {"T1": frozenset(), "T2": B2}
