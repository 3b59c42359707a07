"""Pages of a stream as Arrow record batches of the columns that were asked for."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, IntegerType, LongType, MapType, StringType, StructField, StructType

from pyspark_redis_stream import nested
from pyspark_redis_stream.replies import Page

COLUMNS = "stream string, id_ms bigint, id_n bigint, fields map<string, string>"
OWN = {
    "stream": StringType(),
    "id_ms": LongType(),
    "id_n": LongType(),
    "fields": MapType(StringType(), StringType()),
    "others": MapType(StringType(), StringType()),
}
PLAIN = (StringType(), LongType(), IntegerType())
WIDEST = 1 << 25  # places in a table of entries by names


class Batches:
    """Makes record batches of `schema`: the columns of COLUMNS that it has, `others` (the fields that no other column
    holds), and every other one from the field of its name: text, a whole number, or lists of JSON (null if the field
    is not that).

    ValueError for a column of another type."""

    def __init__(self, schema: StructType) -> None:
        for column in schema.fields:
            _check(column)
        self._kinds = {column.name: column.dataType for column in schema.fields}
        self._schema = to_arrow_schema(schema, timezone="UTC")

    @cached_property
    def _decoders(self) -> dict[str, msgspec.json.Decoder[Any]]:
        """Made where they are used: they cannot be sent there."""
        lists = {name: kind for name, kind in self._kinds.items() if isinstance(kind, ArrayType)}
        return {name: nested.decoder_of(kind) for name, kind in lists.items()}

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
        where = np.full((len(names), entries), -1, np.int32)  # of each name and entry: where its value is
        where[codes, rows] = np.arange(len(codes))  # of a name that an entry has twice, the last one stays
        numbers = pc.split_pattern(page.ids.view(pa.utf8()), "-").flatten().cast(pa.uint64()).to_numpy()
        arrays: dict[str, pa.Array] = {}
        for column in self._schema:
            if column.name == "stream":
                arrays[column.name] = pa.repeat(pa.scalar(stream), entries)
            elif column.name in ("id_ms", "id_n"):
                arrays[column.name] = pa.array(numbers[column.name == "id_n" :: 2].view(np.int64))
            elif column.name == "fields":
                arrays[column.name] = _map(column.type, page, where)
            elif column.name != "others":
                name = column.name.encode()
                at = where[names.index(name)] if name in names else None
                arrays[column.name] = self._column(column, page, at)
        if "others" in self._schema.names:
            left = _left(where, names, arrays)
            arrays["others"] = _map(self._schema.field("others").type, page, left)
        ordered = [arrays[name] for name in self._schema.names]
        return pa.RecordBatch.from_arrays(ordered, schema=self._schema)

    def _column(self, column: pa.Field, page: Page, where: Any) -> pa.Array:
        if where is None:
            return pa.nulls(len(page.ids), column.type)
        values = page.values.take(pa.array(where, mask=where < 0))
        if column.name in self._decoders:
            return nested.lists(column.type, self._decoders[column.name], values)
        return _plain(column.type, _text(values))


def _check(column: StructField) -> None:
    kind, own = column.dataType, OWN.get(column.name)
    if kind == own or (own is None and (kind in PLAIN or nested.can_hold(kind))):
        return
    allowed = own.simpleString() if own else f"{', '.join(plain.simpleString() for plain in PLAIN)} or lists"
    raise ValueError(f"column {column.name} is {kind.simpleString()}, but can only be {allowed}")


def _part(page: Page, start: int, end: int) -> Page:
    first, last = int(page.counts[:start].sum()), int(page.counts[:end].sum())
    return Page(page.ids[start:end], page.counts[start:end], page.names[first:last], page.values[first:last])


def _map(kind: pa.DataType, page: Page, where: Any) -> pa.Array:
    names, values, counts = page.names, page.values, page.counts
    present = where[where >= 0]
    if len(present) < len(names):
        order = pa.array(np.sort(present))
        names, values, counts = names.take(order), values.take(order), (where >= 0).sum(axis=0)
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.MapArray.from_arrays(pa.array(offsets), _text(names), _text(values), type=kind)


def _left(where: Any, names: list[bytes], arrays: Mapping[str, pa.Array]) -> Any:
    """`where` without the values that these columns hold."""
    left = where.copy()
    for place, name in enumerate(text.decode(errors="replace") for text in names):
        if name in arrays and name not in OWN:
            array = arrays[name]
            left[place, array.is_valid().to_numpy(zero_copy_only=False)] = -1
    return left


def _plain(kind: pa.DataType, texts: pa.Array) -> pa.Array:
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
