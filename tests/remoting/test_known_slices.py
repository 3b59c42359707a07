"""Slices that were there the last time are not read again, and nothing that changed is missed."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remoting.json_cut import SLICE_BYTES, Table
from remoting.known_slices import ANCHOR, Slices
from remoting.steps import finished

TABLE = Table[Any]("table", dict[str, Any], dict[str, Any])
COUNT = 2400


def text_of(table: dict[str, Any]) -> bytes:
    return json.dumps({"table": table, "after": {}}, separators=(",", ":")).encode()


def big() -> dict[str, Any]:
    return {f"a-topic-with-a-usual-name-{i:05}": {"attributes": {}, "n": i, "perm": 6} for i in range(COUNT)}


def read(table: dict[str, Any], slices: Slices) -> dict[str, Any]:
    cut = finished(TABLE.cut(text_of(table), slices))
    assert cut
    assert json.loads(cut[1]) == {"table": {}, "after": {}}
    return cut[0]


def known() -> Slices:
    first = Slices()
    assert read(big(), first) == big()
    assert first.unique
    assert not first.skipped
    assert len(first.found) >= len(text_of(big())) // SLICE_BYTES
    return Slices(first.found)


def test_of_an_unchanged_table_only_the_end_is_read() -> None:
    slices = known()
    last = read(big(), slices)
    assert slices.skipped == len(slices.known)
    assert slices.found == slices.known
    assert 0 < len(text_of(last)) <= SLICE_BYTES + 200


@pytest.mark.parametrize("number", [0, 1, 250, COUNT // 2, COUNT - 1])
def test_of_one_changed_member_its_slice_is_read(number: int) -> None:
    slices, table = known(), big()
    name = list(table)[number]
    table[name] = {"attributes": {}, "n": number, "perm": 4}
    found = read(table, slices)
    assert found[name]["perm"] == 4
    assert slices.skipped >= len(slices.known) - 1
    assert big() | found == table


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, COUNT - 1), st.sampled_from(["insert", "remove", "shorter", "longer"])),
        min_size=1,
        max_size=3,
    )
)
def test_whatever_changes_is_read_and_most_of_the_rest_is_not(changes: list[tuple[int, str]]) -> None:
    slices, members = known(), list(big().items())
    for number, change in changes:
        name, value = members[number % len(members)]
        if change == "insert":
            members.insert(number % len(members), (f"new-{number}-{len(members)}", {"n": -1}))
        elif change == "remove":
            del members[number % len(members)]
        else:
            members[number % len(members)] = (name, value | {"perm": "-" * (1 if change == "shorter" else 9)})
    table = dict(members)
    found = read(table, slices)
    whole = big() | found
    assert {name: whole[name] for name in table} == table
    assert slices.skipped >= len(slices.known) - 2 * len(changes)
    again = Slices(slices.found)
    assert read(table, again).items() <= table.items()
    assert again.skipped == len(slices.found)


def test_the_same_start_with_other_bytes_behind_it_is_read() -> None:
    slices, table = known(), big()
    start = next(iter(slices.known))
    assert len(start) == ANCHOR
    name = start.split(b'"')[1].decode()
    table[name] = table[name] | {"perm": 2}
    assert read(table, slices)[name]["perm"] == 2


def test_a_name_that_comes_twice_is_told() -> None:
    twice = text_of(big()).replace(b'{"table":{', b'{"table":{"a-topic-with-a-usual-name-02399":{},', 1)
    slices = Slices()
    assert finished(TABLE.cut(twice, slices))
    assert not slices.unique
