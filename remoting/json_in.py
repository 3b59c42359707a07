"""Reading JSON bodies: strictly first, because that is fast, and once more with the liberties Java takes."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec

from remoting.errors import BodyError
from remoting.steps import Steps, finished
from remoting.tolerant_json import normalising

__all__ = [
    "BodyError",
    "decode_json",
    "decode_loose_json",
    "decode_strict_json",
    "reading_json",
    "without_nulls",
]

T = TypeVar("T")
K = TypeVar("K")
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
REWRITES_MAX: Final = 5000
"""Places of a body that are no strict JSON, beyond which it is refused where it is not read in steps: some 5 ms."""


def decode_json(data: bytes | memoryview, type: type[T]) -> T:
    """The value in `data` as `type`. Raises BodyError, whose text names the member that is wrong."""
    return finished(reading_json(data, type, type, REWRITES_MAX))


def reading_json(
    data: bytes | memoryview, type: type[T], loose: type[K], rewrites_max: int | None = None
) -> Steps[T | K]:
    """As decode_json; what is no strict JSON, or not of that type, is read as `loose` with Java's liberties.

    In steps as far as the liberties go: `data` should be short. Raises BodyError, also where more than `rewrites_max`
    places are no strict JSON."""
    try:
        return decode_strict_json(data, type)
    except BodyError:
        return decode_loose_json((yield from normalising(bytes(data), rewrites_max)), loose)


def decode_strict_json(data: bytes | memoryview, type: type[T]) -> T:
    """The value as `type`, if `data` is strict JSON and numbers are numbers. Raises BodyError."""
    return cast(T, _decoded(_decoder(cast(Any, type), True), data))


def decode_loose_json(data: bytes | memoryview, type: type[T]) -> T:
    """The same where numbers may be text."""
    return cast(T, _decoded(_decoder(cast(Any, type), False), data))


def _decoded(decoder: msgspec.json.Decoder[Any], data: bytes | memoryview) -> Any:
    try:
        return decoder.decode(data)
    except _UNREADABLE as error:
        raise BodyError(str(error).partition("\n")[0]) from error


def without_nulls(table: Mapping[K, T | None] | None) -> dict[K, T]:
    """The entries that have a value; none where the table itself is null."""
    return {key: value for key, value in (table or {}).items() if value is not None}


@cache
def _decoder(type: Any, strict: bool) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type, strict=strict)
