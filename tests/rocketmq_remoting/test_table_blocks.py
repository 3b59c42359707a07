"""Unchanged blocks of a table are not decoded again, and no change is missed."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketmq_remoting.cooperative import run_to_completion
from rocketmq_remoting.json_table import BLOCK_BYTES, JsonTable
from rocketmq_remoting.table_blocks import ANCHOR, TableBlocks

TABLE = JsonTable[Any]("table", dict[str, Any], dict[str, Any])
COUNT = 2400


def text_of(table: dict[str, Any]) -> bytes:
    return json.dumps({"table": table, "after": {}}, separators=(",", ":")).encode()


def big() -> dict[str, Any]:
    return {f"a-topic-with-a-usual-name-{i:05}": {"attributes": {}, "n": i, "perm": 6} for i in range(COUNT)}


def read(table: dict[str, Any], blocks: TableBlocks) -> dict[str, Any]:
    cut = run_to_completion(TABLE.extract(text_of(table), blocks))
    assert cut
    assert json.loads(cut[1]) == {"table": {}, "after": {}}
    return cut[0]


def previous_blocks() -> TableBlocks:
    first = TableBlocks()
    assert read(big(), first) == big()
    assert first.unique
    assert not first.unchanged
    assert len(first.current) >= len(text_of(big())) // BLOCK_BYTES
    return TableBlocks(first.current)


def test_only_the_last_block_of_an_unchanged_table_is_decoded() -> None:
    blocks = previous_blocks()
    last = read(big(), blocks)
    assert blocks.unchanged == len(blocks.previous)
    assert blocks.current == blocks.previous
    assert 0 < len(text_of(last)) <= BLOCK_BYTES + 200


@pytest.mark.parametrize("number", [0, 1, 250, COUNT // 2, COUNT - 1])
def test_the_block_of_a_changed_member_is_decoded(number: int) -> None:
    blocks, table = previous_blocks(), big()
    name = list(table)[number]
    table[name] = {"attributes": {}, "n": number, "perm": 4}
    decoded = read(table, blocks)
    assert decoded[name]["perm"] == 4
    assert blocks.unchanged >= len(blocks.previous) - 1
    assert big() | decoded == table


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, COUNT - 1), st.sampled_from(["insert", "remove", "shorter", "longer"])),
        min_size=1,
        max_size=3,
    )
)
def test_changes_are_decoded_and_most_unchanged_blocks_are_not(changes: list[tuple[int, str]]) -> None:
    blocks, members = previous_blocks(), list(big().items())
    for number, change in changes:
        name, value = members[number % len(members)]
        if change == "insert":
            members.insert(number % len(members), (f"new-{number}-{len(members)}", {"n": -1}))
        elif change == "remove":
            del members[number % len(members)]
        else:
            members[number % len(members)] = (name, value | {"perm": "-" * (1 if change == "shorter" else 9)})
    table = dict(members)
    found = read(table, blocks)
    whole = big() | found
    assert {name: whole[name] for name in table} == table
    assert blocks.unchanged >= len(blocks.previous) - 2 * len(changes)
    again = TableBlocks(blocks.current)
    assert read(table, again).items() <= table.items()
    assert again.unchanged == len(blocks.current)


def test_a_block_with_a_known_anchor_and_other_bytes_is_decoded() -> None:
    blocks, table = previous_blocks(), big()
    start = next(iter(blocks.previous))
    assert len(start) == ANCHOR
    name = start.split(b'"')[1].decode()
    table[name] = table[name] | {"perm": 2}
    assert read(table, blocks)[name]["perm"] == 2


def test_a_repeated_name_is_not_unique() -> None:
    twice = text_of(big()).replace(b'{"table":{', b'{"table":{"a-topic-with-a-usual-name-02399":{},', 1)
    blocks = TableBlocks()
    assert run_to_completion(TABLE.extract(twice, blocks))
    assert not blocks.unique
