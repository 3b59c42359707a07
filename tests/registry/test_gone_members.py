"""Members that left without unregistering: noted by entries of the stream, until they are back."""

import pytest

from registry import gone_members
from registry.gone_members import GONE_MOST, GONE_MS, MemberName
from registry.members import broker_names, brokers
from registry.removal import release_owner, remove_disconnected
from tests.registry.brokers import address, origin
from tests.registry.namespace import Namespace
from worker.jobs.gone_members import GoneMembers

OWNER = "w/1"
MASTER, SLAVE = MemberName("c1", "b1", "0"), MemberName("c1", "b1", "1")


def observed(ns: Namespace) -> None:
    """Note what the stream has since the last call."""
    observer = GoneMembers(ns.keys)
    for event in ns.new_entries():
        observer.observe(event)
    ns.run(observer.note())


def gone(ns: Namespace) -> list[MemberName]:
    found = ns.run(brokers(ns.keys, ns.run(broker_names(ns.keys))))
    return [one.name for one in ns.run(gone_members.read(ns.keys, ns.now_ms(), found))]


@pytest.mark.parametrize("how", ["closed", "lost", "expired"])
def test_one_that_leaves_by_itself_is_gone_until_it_is_back(ns: Namespace, how: str) -> None:
    ns.register("b1", 0, owner=OWNER)
    ns.register("b1", 1)
    if how == "expired":
        ns.lapse("b1", 0)
        assert ns.expire() == 1
    else:
        member = ns.run(release_owner(ns.keys, "c1", address("b1", 0), OWNER))
        assert member is not None
        ns.run(remove_disconnected(ns.keys, member, how, origin()))
    left_ms = ns.now_ms()
    observed(ns)
    assert gone(ns) == [MASTER]
    (noted,) = ns.run(gone_members.read(ns.keys, ns.now_ms(), ()))
    assert 0 <= left_ms - noted.at_ms < 60_000
    assert 0 < ns.store.pttl(ns.keys.gone) <= GONE_MS
    ns.register("b1", 0)
    assert gone(ns) == []  # before any scheduler has seen it
    observed(ns)
    assert not ns.store.exists(ns.keys.gone)


def test_one_that_unregisters_is_not(ns: Namespace) -> None:
    ns.register("b1", 0)
    ns.unregister("b1", 0)
    observed(ns)
    assert gone(ns) == []


def test_for_a_day(ns: Namespace) -> None:
    now = ns.now_ms()
    ns.run(gone_members.note(ns.keys, {MASTER: now - GONE_MS - 1, SLAVE: now - GONE_MS + 60_000}))
    assert gone(ns) == [SLAVE]
    ns.run(gone_members.note(ns.keys, {MemberName("c1", "b2", "0"): None}))
    assert ns.store.zcard(ns.keys.gone) == 1


def test_names_that_are_no_text_and_rows_that_are_no_names(ns: Namespace) -> None:
    """A peer may spell half a surrogate pair, and a hand may write anything."""
    name = MemberName("c1", "\ud800\udcff", "0")
    ns.run(gone_members.note(ns.keys, {name: ns.now_ms()}))
    ns.store.zadd(ns.keys.gone, dict.fromkeys(("x", "[]", "[" * 100_000, '["a","b",1]'), ns.now_ms()))
    assert gone(ns) == [name]
    ns.run(gone_members.note(ns.keys, {name: None}))
    assert gone(ns) == []


def test_no_more_than_so_many(ns: Namespace) -> None:
    """Names are the peers': those that are noted first stay."""
    now = ns.now_ms()
    for part in range(3):
        names = [MemberName("c1", f"b{part}-{number}", "0") for number in range(GONE_MOST // 2 + 1)]
        ns.run(gone_members.note(ns.keys, dict.fromkeys(names, now + part)))
    assert ns.store.zcard(ns.keys.gone) == len(gone(ns)) == GONE_MOST
