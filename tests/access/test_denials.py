"""Refusals of known callers in the memory of a process (access.denials)."""

import pytest

from access import denials
from access.classes import AccessClass
from access.denials import Denials, Denied, Refusals

DENIED = Denied("acl:a", "100")
ADMIN, READ = AccessClass.ADMIN, AccessClass.READ


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_refusals_are_counted_for_each_actor_and_operation() -> None:
    noted = Denials()
    for denied, peer in ((DENIED, "h:1"), (Denied("acl:a", "206"), "h:1"), (DENIED, "h:2")):
        noted.note(denied, ADMIN, peer)
    assert noted.take() == {
        DENIED: Refusals(2, ADMIN, "h:2"),
        Denied("acl:a", "206"): Refusals(1, ADMIN, "h:1"),
    }
    assert (noted.take(), len(noted)) == ({}, 0)


def test_what_could_not_be_reported_is_added_to_what_came_since() -> None:
    noted = Denials()
    noted.note(DENIED, ADMIN, "h:1")
    taken = noted.take()
    noted.note(DENIED, ADMIN, "h:2")
    noted.put_back(taken)
    assert noted.take()[DENIED].times == 2


def test_the_store_is_asked_again_when_it_said_so_and_sooner_if_there_is_more() -> None:
    clock = Clock()
    noted = Denials(clock)
    noted.note(DENIED, ADMIN, "h:1")
    noted.reported(noted.take(), [5000])
    assert (noted.take(), len(noted)) == ({}, 1)
    noted.note(DENIED, READ, "h:2")
    assert noted.take() == {DENIED: Refusals(1, READ, "h:2")}
    noted.note(DENIED, ADMIN, "h:1")
    noted.reported(noted.take(), [5000])
    clock.now += 5
    taken = noted.take()
    assert taken == {DENIED: Refusals(0, ADMIN, "h:1")}
    noted.reported(taken, [0])
    assert len(noted) == 0


def test_of_too_many_only_the_first_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denials, "MOST", 2)
    noted = Denials()
    for actor in ("a", "b", "c", "a"):
        noted.note(Denied(actor, "100"), ADMIN, "h:1")
    assert {denied.actor: refusals.times for denied, refusals in noted.take().items()} == {"a": 2, "b": 1}
