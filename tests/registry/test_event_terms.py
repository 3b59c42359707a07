"""What entries are looked up by: whatever a filter wants has it, in a Bloom filter too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.events.bloom import BITS_OF_TERM, bloom, hash_of, may_have
from registry.events.entry import Event, EventId
from registry.events.filters import Filter, is_of_actor
from registry.events.terms import COLONS_MOST, terms_of, terms_wanted
from tests.registry.test_event_filters import ENTRIES, event

ACTORS = st.text(":ab", max_size=12)
NAMES = ("T1", "T2", "T3", "a/b", "b1", "b2", "b3", "c0", "c1", "c2", "none")
FILTERS = (
    *(Filter(topic=name, checkpoints=every) for name in NAMES for every in (False, True)),
    *(Filter(broker=name, checkpoints=every) for name in NAMES for every in (False, True)),
    *(Filter(cluster=name, checkpoints=every) for name in NAMES for every in (False, True)),
    *(Filter(kinds=frozenset({one.kind}), topic=topic) for one in ENTRIES.values() for topic in (None, "T1")),
    *(Filter(actor=actor) for actor in ("wire", "wire:10.0.0.5", "10.0.0.5", "10.0.0.5:41210", "http", "10")),
    Filter(audited=True),
    Filter(audited=True, broker="b1"),
)


def has(terms: set[str], wanted: Filter) -> bool:
    return all(some & terms for some in terms_wanted(wanted))


@pytest.mark.parametrize("wanted", FILTERS)
def test_what_a_filter_wants_has_its_terms(wanted: Filter) -> None:
    for one in ENTRIES.values():
        assert has({*terms_of(one)}, wanted) or not wanted.wants(one)


def test_entries_of_other_names_and_kinds_have_not() -> None:
    assert [name for name, one in ENTRIES.items() if has({*terms_of(one)}, Filter(topic="T3"))] == [
        "topic deleted"
    ]
    assert not any(has({*terms_of(one)}, Filter(actor="http")) for one in ENTRIES.values())
    assert not has({*terms_of(ENTRIES["topics"])}, Filter(topic="T1", kinds=frozenset({"kv_changed"})))


def test_checkpoint_entries_are_found_by_their_kind_alone() -> None:
    terms = {*terms_of(ENTRIES["round"])}
    assert not has(terms, Filter(topic="T1"))
    assert has(terms, Filter(topic="none", checkpoints=True))
    assert has(terms, Filter(topic="none", kinds=frozenset({"checkpoint"})))


@given(ACTORS, ACTORS, ACTORS)
def test_an_actor_by_any_of_its_beginnings(actor: str, whole: str, peer: str) -> None:
    one = Event(EventId(1), {"kind": "drain_changed", "actor": whole, "peer": peer})
    assert has({*terms_of(one)}, Filter(actor=actor)) or not is_of_actor(one, actor)


@pytest.mark.parametrize(
    "damaged",
    [
        event("topics_changed", rows="[1]"),
        event("topics_changed", rows="["),
        event("broker_updated", also='["\ud800"]'),
        event("conflict_seen", holder="[" * 5000),
        event("kv_changed", actor=":" * (COLONS_MOST + 1)),
    ],
)
def test_damage_may_name_anything(damaged: Event) -> None:
    with pytest.raises((LookupError, ValueError, RecursionError)):
        list(terms_of(damaged))


def test_a_filter_of_everything_asks_for_no_term() -> None:
    assert terms_wanted(Filter()) == terms_wanted(Filter(checkpoints=True)) == ()


@given(st.sets(st.text(), min_size=1, max_size=50))
def test_a_bloom_filter_denies_no_text_that_it_has(terms: set[str]) -> None:
    bits = bloom(terms)
    assert len(bits) * 8 >= len(terms) * BITS_OF_TERM
    assert all(may_have(bits, hash_of(term)) for term in terms)


def test_a_bloom_filter_denies_most_others() -> None:
    bits = bloom({f"name t{number}" for number in range(3_000)})
    assert sum(may_have(bits, hash_of(f"name u{number}")) for number in range(10_000)) < 80


def test_hashes_are_those_of_every_process_and_release() -> None:
    """Another hash needs another VERSION of the summaries."""
    assert hash_of("name T1") == 0xB9C319295FE2D0B6
