"""Tables cut into what one script and one entry may carry; queue data as it is stored."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.queue_data.queue_text import current, queue_data, queue_text, restored, wiped
from registry.queue_data.slices import (
    MAPPINGS_MAX,
    ROWS_MAX_BYTES,
    STAGED_TOPICS,
    TOPICS_MAX,
    Changes,
    Row,
    Slice,
    arguments,
    slicing,
)
from rocketmq_remoting.cooperative import run_to_completion
from rocketmq_remoting.route import QueueData

Rows = list[tuple[str, str, str, list[str]]]
changes = st.lists(
    st.tuples(
        st.tuples(st.sampled_from(("", "8,8,6,0")), st.sampled_from(("", "4,4,6,0"))),
        st.lists(st.text(min_size=1), min_size=1),
    ),
    unique_by=lambda change: change[0],
)


def slices_of(cause: str, topics: Changes, mappings: Iterable[Row] = ()) -> list[Slice]:
    return run_to_completion(slicing("b1", cause, topics, mappings))


def rows(slices: list[Slice]) -> Rows:
    return [row for one in slices for row in msgspec.json.decode(one.rows, type=Rows)]


def pairs(rows: Rows) -> list[tuple[str, str, str]]:
    return [
        (before, after, topic) for name, before, after, topics in rows for topic in topics if name == "b1"
    ]


@given(changes, st.integers(1, 400))
def test_slices_and_their_pieces_hold_every_change_once_and_in_order(
    changes: list[tuple[tuple[str, str], list[str]]], repeated: int
) -> None:
    given = {how: topics * repeated for how, topics in changes}
    expected = [(before, after, topic) for (before, after), topics in given.items() for topic in topics]
    cut = slices_of("register", given)
    assert pairs(rows(cut)) == expected
    assert sum(one.count for one in cut) == len(expected)
    staged = [small for part in cut for small in part.staged()]
    assert pairs(rows(staged)) == expected
    assert all(0 < small.count <= STAGED_TOPICS for small in staged)


@pytest.mark.parametrize(
    ("count", "length", "sizes"),
    [
        pytest.param(TOPICS_MAX, 1, [500], id="as many as one script takes"),
        pytest.param(TOPICS_MAX + 1, 1, [500, 1], id="one more"),
        pytest.param(0, 1, [], id="none"),
        pytest.param(300, 255, [150, 150], id="long names"),
        pytest.param(2, ROWS_MAX_BYTES, [1, 1], id="names that no entry has room for"),
    ],
)
def test_sizes(count: int, length: int, sizes: list[int]) -> None:
    names = [f"{number:03}".ljust(length, "x") for number in range(count)]
    cut = slices_of("register", {("", "8,8,6,0"): names})
    assert [one.count for one in cut] == sizes
    assert all(len(one.rows) <= ROWS_MAX_BYTES or one.count == 1 for one in cut)


def test_one_change_larger_than_an_entry_stands_alone() -> None:
    info = '{"currIdMap":{%s}}' % ",".join(f'"{number}":{number}' for number in range(9000))  # noqa: UP031
    cut = slices_of("register", {}, [Row("S1", "", "{}"), Row("S2", "", info), Row("S3", "", "{}")])
    assert [[row.topic for row in one.mappings] for one in cut] == [["S1"], ["S2"], ["S3"]]


def test_mappings_come_behind_topics() -> None:
    mappings = [Row(f"S{number}", "", "{}") for number in range(MAPPINGS_MAX + 1)]
    cut = slices_of("register", {("", "1,1,6,0"): ["T"]}, mappings)
    assert [(one.kind, one.count) for one in cut] == [
        ("topics_changed", 1),
        ("mappings_changed", 100),
        ("mappings_changed", 1),
    ]
    assert msgspec.json.decode(cut[2].rows) == [["b1", "S100", None, {}]]


def test_arguments_of_a_script() -> None:
    topics, infos = slices_of("register", {("", "1,1,6,0"): ["T"]}, [Row("S", "{}", "")])
    assert arguments(topics, (topics, infos)) == (
        *("0", "1", "2"),
        *("", "1,1,6,0", "1", "T"),
        *topics.entry(),
        *infos.entry(),
    )
    assert arguments(infos, (infos,)) == ("1", "0", "1", "S", "", *infos.entry())
    assert arguments(topics) == ("0", "1", "0", "", "1,1,6,0", "1", "T")
    assert arguments() == ("0", "0", "0")


@pytest.mark.parametrize(("changes", "topic"), [(("T",), "T"), (("T", "U"), "")])
def test_an_entry_of_one_topic_names_it(changes: tuple[str, ...], topic: str) -> None:
    one: Slice = slices_of("wipe", {("1,1,6,0", "1,1,4,0"): [*changes]})[0]
    assert one.entry() == ("topics_changed", "wipe", one.rows, str(len(changes)), topic)


@pytest.mark.parametrize(
    ("perm", "without_write", "after_wipe", "after_restore"),
    [(6, 4, 4, 6), (4, 4, 4, 6), (2, 0, 0, 6), (0, 0, 0, 6), (15, 13, 13, 6), (-1, -3, -3, 6)],
)
def test_permissions(perm: int, without_write: int, after_wipe: int, after_restore: int) -> None:
    data = QueueData("b1", 3, 4, perm, 5)
    text = queue_text(data)
    assert queue_data("b1", text) == data
    assert queue_data("b1", queue_text(data, without_write=True)).perm == without_write
    assert queue_data("b1", wiped(text)) == msgspec.structs.replace(data, perm=after_wipe)
    assert queue_data("b1", restored(text)) == msgspec.structs.replace(data, perm=after_restore)


def test_only_fields_of_the_epoch_count() -> None:
    stored = {"T1": "7,8,8,6,0", "T2": "77,8,8,6,0", "T3": "6,7,7,6,0"}
    assert current(stored, "7") == {"T1": "8,8,6,0"}
