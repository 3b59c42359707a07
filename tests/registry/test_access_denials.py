"""Entries `access_denied`: one a minute for each actor and operation, whichever processes report."""

from typing import Final

import pytest

from registry.access_denials import DeniedCalls, report
from registry.events.entry import Event
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

MINUTE_MS: Final = 60_000


def reported(ns: Namespace, times: int, actor: str = "acl:a", operation: str = "100") -> int:
    (wait_ms,) = ns.run(
        report(ns.keys, [DeniedCalls(actor, operation, "admin", "10.0.0.1:4711", times)], origin())
    )
    return wait_ms


def entries(ns: Namespace) -> list[Event]:
    return [event for event in ns.new_entries() if event.kind == "access_denied"]


def counts(ns: Namespace) -> list[int]:
    return [event.number("count") for event in entries(ns)]


def end_minute(ns: Namespace) -> None:
    """As if the minute of `acl:a` and 100 were over."""
    key = ns.keys.access_denied("acl:a", "100")
    ends, left = str(ns.store.get(key)).split()
    ns.store.set(key, f"{int(ends) - MINUTE_MS} {left}")


def test_an_entry_says_who_was_refused_what(ns: Namespace) -> None:
    assert reported(ns, 3) == 0
    (event,) = entries(ns)
    assert event.is_audited
    assert {name: event.get(name) for name in ("cause", "actor", "peer", "operation", "class", "count")} == {
        **{"cause": "denied", "actor": "acl:a", "peer": "10.0.0.1:4711"},
        **{"operation": "100", "class": "admin", "count": "3"},
    }


def test_more_within_the_minute_is_counted_and_told_after_it_by_the_first_that_asks(ns: Namespace) -> None:
    reported(ns, 1)
    assert counts(ns) == [1]
    for times in (5, 0, 7):
        assert 0 < reported(ns, times) <= MINUTE_MS
    assert counts(ns) == []
    end_minute(ns)
    assert reported(ns, 0) == 0
    assert counts(ns) == [12]
    assert reported(ns, 0) == 0
    assert 0 < reported(ns, 1) <= MINUTE_MS
    assert counts(ns) == []


def test_nothing_is_told_of_nothing(ns: Namespace) -> None:
    assert reported(ns, 0) == 0
    assert ns.store.keys("*") == []


def test_actors_and_operations_have_minutes_of_their_own(ns: Namespace) -> None:
    calls = [
        DeniedCalls(actor, operation, "admin", "h:1", 1)
        for actor in ("acl:a", "token:a")
        for operation in ("100", "PUT /v1/kv/<namespace>")
    ]
    assert ns.run(report(ns.keys, calls * 2, origin()))[:4] == [0] * 4
    assert len(entries(ns)) == 4


@pytest.mark.parametrize("text", ["x", "99999999999999 5", "1 -1", ""])
def test_what_is_damaged_or_of_a_later_time_counts_as_nothing(ns: Namespace, text: str) -> None:
    ns.store.set(ns.keys.access_denied("acl:a", "100"), text)
    assert reported(ns, 1) == 0
    assert counts(ns) in ([1], [6])


def test_a_key_of_another_type_is_deleted(ns: Namespace) -> None:
    ns.store.hset(ns.keys.access_denied("acl:a", "100"), "x", "y")
    assert reported(ns, 1) == 0
    assert counts(ns) == [1]


def test_its_key_does_not_stay(ns: Namespace) -> None:
    reported(ns, 1)
    assert 0 < ns.store.pttl(ns.keys.access_denied("acl:a", "100")) <= 600_000
