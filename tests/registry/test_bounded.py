"""The map of all caches: within its bytes, and the least recently used goes first."""

import time

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from registry.caching.bounded import ENTRY_FRACTION, Bounded

LIMIT = 100


def sized(limit: int = LIMIT) -> Bounded[str, int]:
    """A map of numbers that cost what they are."""
    return Bounded(limit, lambda _, cost: cost)


def test_the_least_recently_used_goes_first() -> None:
    entries = sized()
    for name in "abcde":
        entries.put(name, 20)
    assert entries.get("a") == 20
    entries.entries.move_to_end("c")
    entries.put("f", 20)
    entries.put("g", 20)
    assert list(entries.entries) == ["e", "a", "c", "f", "g"]


def test_each_evicted_entry_is_reported_and_no_other() -> None:
    evicted: list[tuple[str, int]] = []
    entries: Bounded[str, int] = Bounded(LIMIT, lambda _, cost: cost, lambda *entry: evicted.append(entry))
    for name in "abcde":
        entries.put(name, 20)
    entries.put("a", 19)
    entries.pop("b")
    assert evicted == []
    entries.put("f", 25)
    entries.clear()
    assert evicted == [("c", 20)]


@pytest.mark.parametrize(
    ("cost", "kept"), [(LIMIT // ENTRY_FRACTION, True), (LIMIT // ENTRY_FRACTION + 1, False)]
)
def test_one_that_would_evict_most_others_is_not_kept_nor_the_one_before(cost: int, kept: bool) -> None:
    entries = sized()
    entries.put("a", 20)
    entries.put("b", 1)
    assert entries.put("b", cost) is kept
    assert entries.get("b") == (cost if kept else None)
    assert entries.get("a") == 20
    assert entries.size == 20 + kept * cost


NAMES = st.sampled_from("abcdefgh")
STEPS = st.lists(st.tuples(st.sampled_from(["put", "get", "pop"]), NAMES, st.integers(0, 30)), max_size=60)


@settings(max_examples=300)
@given(STEPS)
def test_its_size_is_that_of_its_entries_and_never_over_the_limit(steps: list[tuple[str, str, int]]) -> None:
    entries = sized()
    for what, name, cost in steps:
        if what == "put":
            entries.put(name, cost)
        else:
            getattr(entries, what)(name)
        assert entries.size == sum(entries.entries.values()) <= LIMIT


def test_an_eviction_takes_as_long_in_a_map_of_many() -> None:
    entries: Bounded[int, int] = Bounded(100_000, lambda *_: 1)
    for number in range(100_000):
        entries.put(number, 0)
    before = time.process_time()
    for number in range(100_000, 120_000):
        entries.put(number, 0)
    assert time.process_time() - before < 0.5
