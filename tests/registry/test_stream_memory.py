"""The event stream is bounded in bytes between two runs of the trimming job too, whatever size its entries have."""

import pytest

from registry.events.trim import AUDIT_PART, trim
from registry.kv import put
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace
from tests.registry.steps import Stepped

MOST = 4 << 20
SLACK = 300_000
"""An entry of two values of 64 KB, and a whole node."""
MINUTE_MS = 60_000


def used(ns: Namespace, stream: str) -> int:
    return ns.store.memory_usage(stream, samples=0) or 0


def flood(ns: Namespace, entries: int) -> None:
    for number in range(entries):
        ns.run(put(ns.keys, "n", "k", f"{number:05d}" * 12_000, origin()))


@pytest.fixture
def noted(ns: Namespace) -> Namespace:
    """A stream that begins with small entries, and its bound."""
    ns.rewritten = True
    for number in range(500):
        ns.run(put(ns.keys, "n", "small", str(number), origin()))
    ns.run(trim(ns.keys, origin(), retention_ms=MINUTE_MS, max_bytes=MOST))
    return ns


def test_what_comes_between_two_runs_is_bounded(noted: Namespace) -> None:
    last = noted.store.xrevrange(noted.keys.events, count=1)
    flood(noted, 200)
    assert MOST < used(noted, noted.keys.events) < MOST * 7 // 4
    assert noted.store.zcard(noted.keys.events_offsets) <= 126
    newest = noted.store.xrevrange(noted.keys.events, count=1)
    assert newest != last
    assert newest[0][1]["seq"] == noted.store.hget(noted.keys.events_meta, "seq")


def test_all_bytes_of_entries_are_counted(ns: Namespace) -> None:
    """Of small ones a fifth is what each has: kind, sequence and incarnation."""
    ns.register("b1", topics=("T1", "T2"))
    ns.register("b1", topics=("T1", "T2", "T3"), version=2)
    texts = [
        text for _, fields in ns.store.xrange(ns.keys.events) for field in fields.items() for text in field
    ]
    assert int(ns.store.hget(ns.keys.events_meta, "appended")) == sum(len(text) for text in texts)


@pytest.mark.parametrize("damage", ["key", "numbers"])
def test_damage_of_what_bounds_the_stream_fails_no_registration(noted: Namespace, damage: str) -> None:
    """A script that failed there would have appended its entry and not written its tables."""
    if damage == "key":
        noted.store.set(noted.keys.events_offsets, "damaged")
    else:
        noted.store.hset(noted.keys.events_meta, mapping={"appended": "9" * 400, "max_bytes": "0"})
    flood(noted, 3)
    noted.register("b1", topics=("T1", "T2"))
    assert noted.route("T1").queue_datas
    noted.run(trim(noted.keys, origin(), retention_ms=MINUTE_MS, max_bytes=MOST))
    flood(noted, 200)
    assert MOST < used(noted, noted.keys.events) < MOST * 7 // 4


def test_a_run_finds_the_memory_of_entries_that_are_larger_than_the_first(noted: Namespace) -> None:
    flood(noted, 60)
    noted.run(trim(noted.keys, origin(), retention_ms=MINUTE_MS, max_bytes=MOST // 2))
    assert 0 < used(noted, noted.keys.events) < MOST // 2 + SLACK
    assert 0 < used(noted, noted.keys.audit) < MOST // 2 // AUDIT_PART + SLACK


def test_copies_are_bounded_while_they_are_made(noted: Namespace) -> None:
    flood(noted, 60)
    run = Stepped(trim(noted.keys, origin(), retention_ms=MINUTE_MS, max_bytes=MOST), noted.store)
    most = 0
    while run.request is not None:
        run.step()
        most = max(most, used(noted, noted.keys.audit))
    assert 0 < most < MOST // AUDIT_PART * 5 // 4 + SLACK


def test_marks_before_the_stream_count_for_nothing(noted: Namespace) -> None:
    flood(noted, 30)
    noted.store.delete(noted.keys.events)
    flood(noted, 30)
    assert 3 << 20 < used(noted, noted.keys.events) < 4 << 20
