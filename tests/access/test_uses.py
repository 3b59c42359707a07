"""Uses of credentials in the memory of a process (access.uses, access.records)."""

import pytest

from access import uses
from access.records import Records
from access.uses import Uses
from registry.errors import StoreUnavailable
from registry.keys import Keys
from registry.plans import Origin, ScriptCall

ORIGIN = Origin("w1-1", "worker:w1")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_last_use_of_each_is_taken_once_with_its_age() -> None:
    clock = Clock()
    noted = Uses(clock)
    noted.note("a", "b")
    clock.now += 5
    noted.note("a")
    clock.now += 1
    taken = noted.take()
    assert noted.ages_ms(taken) == {"a": 1000, "b": 6000}
    assert noted.take() == {}


def test_what_is_put_back_gives_way_to_later_uses() -> None:
    clock = Clock()
    noted = Uses(clock)
    noted.note("a", "b")
    taken = noted.take()
    clock.now += 5
    noted.note("a")
    noted.put_back(taken)
    assert noted.ages_ms(noted.take()) == {"a": 0, "b": 5000}


def test_of_too_many_those_go_that_were_used_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "MOST", 3)
    noted = Uses()
    noted.note("a", "b", "c")
    noted.note("a")
    noted.note("d")
    assert list(noted.take()) == ["c", "a", "d"]
    noted.note("x", "y")
    noted.put_back({"c": 0.0, "a": 1.0})
    assert list(noted.take()) == ["a", "x", "y"]


def test_records_are_kept_until_the_store_has_taken_them() -> None:
    clock = Clock()
    records = Records(clock)
    assert not records.are_pending
    records.uses.note("acl:K#k")
    plan = records.write(Keys(), ORIGIN)
    assert isinstance(next(plan), ScriptCall)
    with pytest.raises(StoreUnavailable):
        plan.throw(StoreUnavailable("away"))
    clock.now += 7
    assert records.are_pending
    plan = records.write(Keys(), ORIGIN)
    request = next(plan)
    assert isinstance(request, ScriptCall)
    assert request.args[1:] == ("acl:K#k", "7000")
    assert not records.are_pending
