"""Columns as numbers."""

import pyarrow as pa

from mqpipeline.codes import coded, numbered, together

TEXTS = ["b", None, "a", "", "b", "ä", None]


def test_equal_values_and_greater_ones() -> None:
    found = coded(pa.array(TEXTS))
    assert found.values.to_pylist() == ["", "a", "b", "ä", None]
    assert found.numbers.tolist() == [2, 4, 1, 0, 2, 3, 4]


def test_chunks_share_their_numbers() -> None:
    found = coded(pa.chunked_array([TEXTS[:3], TEXTS[3:]]))
    assert found.values.take(pa.array(found.numbers)).to_pylist() == TEXTS


def test_none() -> None:
    found = coded(pa.chunked_array([], pa.string()))
    assert (len(found.numbers), len(found.values)) == (0, 0)


def test_rows_differ_in_any_column() -> None:
    columns = [pa.array(["a", "a", "b", None, "a"]), pa.array([1, 2, 1, 1, 1])]
    numbers = together(*columns).tolist()
    assert numbers[0] == numbers[4]
    assert len(set(numbers)) == 4


def test_rows_by_number() -> None:
    rows = pa.table({"a": ["x", None, "x", "y"], "b": [1, 2, 1, 1], "c": [1, 2, 3, 4]})
    numbers, values = numbered(rows, "a", "b")
    assert values.take(pa.array(numbers)).equals(rows.select(["a", "b"]))
    assert len(values) == 3
