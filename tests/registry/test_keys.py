"""Names of keys, and of members in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import InvalidField
from registry.keys import Keys, member_key, split_member_key


@pytest.mark.parametrize("namespace", ["default", "a.b-c_D9", "0"])
def test_all_keys_of_a_namespace_lie_in_one_slot(namespace: str) -> None:
    keys = Keys(namespace)
    names = [
        keys.clusters,
        keys.cluster("c"),
        keys.broker("b"),
        keys.pending("b"),
        keys.alive("m"),
        keys.member("m"),
        keys.route("t"),
        keys.topics_of("b"),
        keys.events,
        keys.events_meta,
        keys.kv("n"),
    ]
    assert len(set(names)) == len(names)
    assert all(name.startswith(f"ns:{{{namespace}}}:") for name in names)


@pytest.mark.parametrize("namespace", ["", "a b", "a{b", "a}b", "ä", "a\n", "a:b"])
def test_a_namespace_that_breaks_the_hash_tag_is_refused(namespace: str) -> None:
    with pytest.raises(InvalidField, match="namespace"):
        Keys(namespace)


@given(st.text(), st.text())
def test_a_member_key_can_be_taken_apart(cluster: str, address: str) -> None:
    assert split_member_key(member_key(cluster, address)) == (cluster, address)


@given(st.tuples(st.text(":%3A25ab"), st.text(":%ab")), st.tuples(st.text(":%3A25ab"), st.text(":%ab")))
def test_no_two_members_share_a_key(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (member_key(*one) == member_key(*other)) == (one == other)
