"""Fields that hold JSON as columns of lists: a struct's members are the elements of a JSON list, in their order."""

from collections.abc import Sequence
from itertools import chain
from types import GenericAlias
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, StringType, StructType

from pyspark_redis_stream import plain_rows

BITS: dict[DataType, int] = {LongType(): 64, IntegerType(): 32}


def can_hold(kind: DataType) -> bool:
    """Whether `kind` is a list, of text, whole numbers, lists and structs of these."""
    return isinstance(kind, ArrayType) and _shape(kind) is not None


def decoder_of(kind: ArrayType) -> msgspec.json.Decoder[Any]:
    """Takes JSON of exactly this shape, in which nothing is null."""
    return msgspec.json.Decoder(_shape(kind))


def lists(kind: pa.DataType, decoder: msgspec.json.Decoder[Any], texts: pa.Array) -> pa.Array:
    """An array of lists, null where there is no text or one that the decoder does not take."""
    if not plain_rows.can_hold(kind):
        return _one_by_one(kind, decoder, texts)
    plain, odd = plain_rows.lists(kind, texts)
    if not odd.any():
        return plain
    others = _one_by_one(kind, decoder, texts.filter(pa.array(odd)))
    order = np.arange(len(texts))
    order[odd] = len(texts) + np.arange(len(others))
    return pa.concat_arrays([plain, others]).take(pa.array(order))


def _one_by_one(kind: pa.DataType, decoder: msgspec.json.Decoder[Any], texts: pa.Array) -> pa.Array:
    values = [None if text is None else _decoded(decoder, text) for text in texts.to_pylist()]
    return _lists(kind, [value or () for value in values], pa.array([value is None for value in values]))


def _shape(kind: DataType) -> Any:
    if kind == StringType():
        return str
    if kind in BITS:
        most = 1 << BITS[kind] - 1
        return Annotated[int, msgspec.Meta(ge=-most, le=most - 1)]
    if isinstance(kind, ArrayType):
        within = _shape(kind.elementType)
        return within and GenericAlias(list, (within,))
    if isinstance(kind, StructType):
        members = tuple(_shape(member.dataType) for member in kind.fields)
        return GenericAlias(tuple, members) if all(members) else None
    return None


def _decoded(decoder: msgspec.json.Decoder[Any], text: bytes) -> Any:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _array(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    if pa.types.is_list(kind):
        return _lists(kind, values, None)
    if pa.types.is_struct(kind):
        members = zip(*values, strict=True) if values else [()] * kind.num_fields
        arrays = [_array(field.type, member) for field, member in zip(kind, members, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=list(kind))
    return pa.array(values, kind)


def _lists(kind: pa.DataType, values: Sequence[Sequence[Any]], without: pa.Array | None) -> pa.Array:
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    within = _array(kind.value_type, list(chain.from_iterable(values)))
    return pa.ListArray.from_arrays(pa.array(offsets), within, type=kind, mask=without)
