"""Results of comparisons of name servers: what is stored, and which entries tell of it."""

from typing import Any, Final

import msgspec
import pytest

from registry.drift import (
    COMPARISONS_MOST,
    KEPT_MS,
    Comparison,
    Difference,
    DriftReport,
    Unanswered,
    comparison,
    comparisons,
    delete,
    report,
)
from registry.errors import ComparisonNotFound, TableFull
from registry.events.entry import Event
from registry.events.values import values_of
from registry.plans import ask
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

TWO: Final = ("10.0.0.1:9876", "10.0.0.2:9876")
SAME: Final = DriftReport(TWO, 60)
ONE_TOPIC: Final = DriftReport(
    TWO, 60, {"topic-missing": 1}, (), (Difference("topic-missing", "T", f"unknown at {TWO[1]}"),)
)
SILENT: Final = DriftReport(TWO, 60, {}, (Unanswered(TWO[1], "no answer within 5 s"),))


def reported(ns: Namespace, found: DriftReport, name: str = "java") -> str:
    return ns.run(report(ns.keys, name, found, origin()))


def stored(ns: Namespace, name: str = "java") -> Comparison:
    return ns.run(comparisons(ns.keys)).by_name[name]


def entries(ns: Namespace) -> list[Event]:
    return [event for event in ns.new_entries() if event.kind == "drift_changed"]


def state(outcome: str, counts: dict[str, int], unreachable: list[str]) -> dict[str, Any]:
    return {"outcome": outcome, "name_servers": list(TWO), "counts": counts, "unreachable": unreachable}


def aged(ns: Namespace, by_ms: int, name: str = "java") -> None:
    """As if the comparison had been reported so long before."""
    before = stored(ns, name)
    text = msgspec.json.encode(msgspec.structs.replace(before, at_ms=before.at_ms - by_ms)).decode()
    ns.store.hset(ns.keys.drift, name, text)


def test_a_result_is_stored_with_its_time(ns: Namespace) -> None:
    before = ns.now_ms()
    event_id = reported(ns, ONE_TOPIC)
    one = stored(ns)
    assert one.report == ONE_TOPIC
    assert before <= one.at_ms == one.since_ms <= ns.now_ms()
    assert not one.is_stale(one.at_ms + 60_000)
    assert one.is_stale(one.at_ms + 60_001)
    assert ns.run(comparison(ns.keys, "java"))[1] == one
    assert [str(event.id) for event in entries(ns)] == [event_id]


def test_entries_say_what_it_was_and_what_it_is(ns: Namespace) -> None:
    for found in (SAME, ONE_TOPIC, SILENT):
        reported(ns, found)
    same, drift, silent = (
        state("same", {}, []),
        state("drift", {"topic-missing": 1}, []),
        state("unreachable", {}, [TWO[1]]),
    )
    assert [(event.cause, values_of(event)) for event in entries(ns)] == [
        ("compared", {"comparison": "java", "after": same}),
        ("compared", {"comparison": "java", "before": same, "after": drift}),
        ("compared", {"comparison": "java", "before": drift, "after": silent}),
    ]


def test_the_same_result_again_has_no_entry_and_is_stored(ns: Namespace) -> None:
    reported(ns, ONE_TOPIC)
    aged(ns, 5_000)
    first = stored(ns)
    entries(ns)
    other_example = msgspec.structs.replace(ONE_TOPIC, examples=())
    assert reported(ns, other_example) == ""
    assert entries(ns) == []
    again = stored(ns)
    assert again.report == other_example
    assert again.at_ms > first.at_ms
    assert again.since_ms == first.since_ms


@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(ONE_TOPIC, counts={"topic-missing": 2}),
        msgspec.structs.replace(ONE_TOPIC, counts={"kv-differs": 1}),
        msgspec.structs.replace(ONE_TOPIC, name_servers=(TWO[0], "10.0.0.3:9876")),
    ],
    ids=["another number", "another kind", "another name server"],
)
def test_another_result_has_an_entry(ns: Namespace, other: DriftReport) -> None:
    reported(ns, ONE_TOPIC)
    assert reported(ns, other)
    assert len(entries(ns)) == 2


def test_one_that_is_deleted_has_an_entry_once(ns: Namespace) -> None:
    reported(ns, SAME)
    assert ns.run(delete(ns.keys, "java", origin()))
    assert ns.run(delete(ns.keys, "java", origin())) == ""
    assert [(event.cause, "after" in event.fields) for event in entries(ns)] == [
        ("compared", True),
        ("deleted", False),
    ]
    with pytest.raises(ComparisonNotFound, match="'java'"):
        ns.run(comparison(ns.keys, "java"))


def test_there_are_twenty_at_most(ns: Namespace) -> None:
    for number in range(COMPARISONS_MOST):
        reported(ns, SAME, f"c{number}")
    with pytest.raises(TableFull, match="20 comparisons"):
        reported(ns, SAME, "more")
    reported(ns, ONE_TOPIC, "c0")
    ns.run(delete(ns.keys, "c1", origin()))
    reported(ns, SAME, "more")
    assert ns.store.hlen(ns.keys.drift) == COMPARISONS_MOST


def test_one_of_a_week_ago_is_gone_and_makes_room(ns: Namespace) -> None:
    for number in range(COMPARISONS_MOST):
        reported(ns, SAME, f"c{number}")
    assert 0 < ns.store.pttl(ns.keys.drift) <= KEPT_MS
    aged(ns, KEPT_MS + 1, "c0")
    assert "c0" not in ns.run(comparisons(ns.keys)).by_name
    reported(ns, SAME, "more")
    assert ns.store.hlen(ns.keys.drift) == COMPARISONS_MOST
    assert not ns.store.hexists(ns.keys.drift, "c0")


@pytest.mark.parametrize("text", ["x", "{}", "[" * 10_000, '{"at_ms":"1"}'])
def test_what_is_damaged_is_none_and_is_replaced(ns: Namespace, text: str) -> None:
    ns.store.hset(ns.keys.drift, "java", text)
    assert ns.run(comparisons(ns.keys)).by_name == {}
    assert reported(ns, SAME)
    assert stored(ns).report == SAME


def test_a_report_that_comes_behind_another_one_says_what_that_was(ns: Namespace) -> None:
    """Between its look and its script another one is stored: its entry says what was before it."""
    reported(ns, SAME)
    plan = report(ns.keys, "java", SILENT, origin())
    reply, came_between = None, False
    while True:
        try:
            request = plan.send(reply)
        except StopIteration:
            break
        if getattr(request, "name", "") == "set_drift" and not came_between:
            came_between = True
            reported(ns, ONE_TOPIC)
        reply = ns.run(ask(request))
    assert [values_of(event).get("before", {}).get("outcome") for event in entries(ns)] == [
        None,
        "same",
        "drift",
    ]
