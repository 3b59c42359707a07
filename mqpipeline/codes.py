"""Columns as numbers, which can be compared and sorted whatever the values are."""

from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]


class Codes(NamedTuple):
    """`values[numbers[i]]` is the i-th value of a column; `values` are distinct and ascend, null behind all others."""

    numbers: Numbers
    values: pa.Array


def coded(column: pa.Array | pa.ChunkedArray) -> Codes:
    """Equal values, null among them, get equal numbers, and greater ones greater."""
    encoded = column.dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    order = pc.array_sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    return Codes(rank[encoded.indices.to_numpy()], encoded.dictionary.take(order))


def together(*columns: pa.Array | pa.ChunkedArray) -> Numbers:
    """A number for each row, different for rows that differ in any of these columns."""
    each = [coded(column) for column in columns]
    start = np.zeros(len(columns[0]), np.int64)
    return reduce(lambda number, codes: number * len(codes.values) + codes.numbers, each, start)


def numbered(table: pa.Table, *names: str) -> tuple[Numbers, pa.Table]:
    """Numbers from 0 on, the same for rows that are alike in these columns; and the columns' values, by number."""
    combined = together(*(table[name] for name in names))
    _, first, numbers = np.unique(combined, return_index=True, return_inverse=True)
    return numbers, table.select(names).take(first)
