"""Pages of a stream as Arrow record batches of the columns that were asked for."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, MapType, StringType, StructType

from pipeline.source.replies import Page

COLUMNS = "stream string, id_ms bigint, id_n bigint, fields map<string, string>"
OWN = {
    "stream": StringType(),
    "id_ms": LongType(),
    "id_n": LongType(),
    "fields": MapType(StringType(), StringType()),
}
WIDEST = 1 << 25  # places in a table of entries by names


class Batches:
    """Makes record batches of `schema`: the columns of COLUMNS that it has, and every other one from the field of its
    name: text, or a whole number (null if the field is not one).

    ValueError for a column of another type."""

    def __init__(self, schema: StructType) -> None:
        for column in schema.fields:
            allowed = [OWN[column.name]] if column.name in OWN else [StringType(), LongType(), IntegerType()]
            if column.dataType not in allowed:
                raise ValueError(
                    f"column {column.name} is {column.dataType.simpleString()}, "
                    f"but can only be {' or '.join(one.simpleString() for one in allowed)}"
                )
        self._schema = to_arrow_schema(schema, timezone="UTC")

    def of(self, stream: str, page: Page) -> list[pa.RecordBatch]:
        """One batch, or several if the entries hardly share a field's name; none of no entries."""
        entries = len(page.ids)
        if not entries:
            return []
        encoded = page.names.dictionary_encode()
        if entries * len(encoded.dictionary) > WIDEST and entries > 1:
            half = entries // 2
            return [*self.of(stream, _part(page, 0, half)), *self.of(stream, _part(page, half, entries))]
        return [self._batch(stream, page, encoded)]

    def _batch(self, stream: str, page: Page, encoded: pa.DictionaryArray) -> pa.RecordBatch:
        entries, names = len(page.ids), encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy()
        rows = np.repeat(np.arange(entries), page.counts)
        where = np.full((entries, len(names)), -1, np.int64)  # of each entry and name: where its value is
        where[rows, codes] = np.arange(len(codes))  # of a name that an entry has twice, the last one stays
        numbers = pc.split_pattern(page.ids.view(pa.utf8()), "-").flatten().cast(pa.uint64()).to_numpy()
        arrays = []
        for column in self._schema:
            if column.name == "stream":
                array = pa.repeat(pa.scalar(stream), entries)
            elif column.name in ("id_ms", "id_n"):
                array = pa.array(numbers[column.name == "id_n" :: 2].view(np.int64))
            elif column.name == "fields":
                array = _map(column.type, page, where)
            else:
                name = column.name.encode()
                array = _column(column.type, page, where[:, names.index(name)] if name in names else None)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _part(page: Page, start: int, end: int) -> Page:
    first, last = int(page.counts[:start].sum()), int(page.counts[:end].sum())
    return Page(page.ids[start:end], page.counts[start:end], page.names[first:last], page.values[first:last])


def _map(kind: pa.DataType, page: Page, where: Any) -> pa.Array:
    names, values, counts = page.names, page.values, page.counts
    kept = where[where >= 0]
    if len(kept) < len(names):
        order = pa.array(np.sort(kept))
        names, values, counts = names.take(order), values.take(order), (where >= 0).sum(axis=1)
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.MapArray.from_arrays(pa.array(offsets), _text(names), _text(values), type=kind)


def _column(kind: pa.DataType, page: Page, where: Any) -> pa.Array:
    if where is None:
        return pa.nulls(len(page.ids), kind)
    texts = _text(page.values.take(pa.array(where, mask=where < 0)))
    if kind == pa.utf8():
        return texts
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return pa.array([_number(text, kind.bit_width) for text in texts.view(pa.binary()).to_pylist()], kind)


def _number(text: bytes | None, bits: int) -> int | None:
    try:
        number = int(text or b"")
    except ValueError:
        return None
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def _text(binary: pa.Array) -> pa.Array:
    """The same bytes as text: what is not UTF-8 stays as it is, and so Spark keeps it."""
    return binary.view(pa.utf8())
