"""Reading JSON bodies: strictly first, because that is fast, and once more with the liberties Java takes."""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from remoting.errors import BodyError
from remoting.tolerant_json import normalise

__all__ = ["BodyError", "decode_json", "decode_tolerant_json", "without_nulls"]

T = TypeVar("T")
K = TypeVar("K")
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def decode_json(data: bytes | memoryview, type: type[T]) -> T:
    """The value in `data` as `type`. Raises BodyError, whose text names the member that is wrong."""
    try:
        return cast(T, _decoder(cast(Any, type), True).decode(data))
    except _UNREADABLE:
        return decode_tolerant_json(data, type)


def decode_tolerant_json(data: bytes | memoryview, type: type[T]) -> T:
    """As decode_json, for what is known to need the liberties; numbers may be text as well."""
    try:
        return cast(T, _decoder(cast(Any, type), False).decode(normalise(bytes(data))))
    except _UNREADABLE as error:
        raise BodyError(str(error).partition("\n")[0]) from error


def without_nulls(table: Mapping[K, T | None] | None) -> dict[K, T]:
    """The entries that have a value; none where the table itself is null."""
    return {key: value for key, value in (table or {}).items() if value is not None}


@cache
def _decoder(type: Any, strict: bool) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type, strict=strict)
