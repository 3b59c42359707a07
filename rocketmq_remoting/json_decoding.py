"""Decoding JSON bodies: strictly first, because that is fast, then leniently, as Java's JSON library does."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

import msgspec

from rocketmq_remoting.cooperative import Cooperative, run_to_completion
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.tolerant_json import normalise_cooperatively
from rocketmq_remoting.typed import decoder

__all__ = [
    "UNREADABLE",
    "BodyError",
    "decode_json",
    "decode_json_cooperatively",
    "decode_loose_json",
    "decode_strict_json",
    "without_nulls",
]

T = TypeVar("T")
K = TypeVar("K")
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for a text that is no JSON, or of another type."""
REWRITES_MAX: Final = 5000
"""Most rewrites of a body that is decoded without a pause: about 5 ms."""


def decode_json(data: bytes | memoryview, type: type[T]) -> T:
    """Return the value in `data` as `type`. Raises BodyError, whose text names the invalid member."""
    return run_to_completion(decode_json_cooperatively(data, type, type, REWRITES_MAX))


def decode_json_cooperatively(
    data: bytes | memoryview, type: type[T], loose: type[K], rewrites_max: int | None = None
) -> Cooperative[T | K]:
    """Return the value in `data` as `type`; if it is no strict JSON or of another type, as `loose`, leniently.

    Only the rewrite to strict JSON is cooperative, so `data` should be short. Raises BodyError, also if more than
    `rewrites_max` tokens need a rewrite."""
    try:
        return decode_strict_json(data, type)
    except BodyError:
        return decode_loose_json((yield from normalise_cooperatively(bytes(data), rewrites_max)), loose)


def decode_strict_json(data: bytes | memoryview, type: type[T]) -> T:
    """Return the value of strict JSON as `type`. Raises BodyError."""
    return cast(T, _decoded(decoder(cast(Any, type)), data))


def decode_loose_json(data: bytes | memoryview, type: type[T]) -> T:
    """Return the value of strict JSON as `type`; numbers may be text. Raises BodyError."""
    return cast(T, _decoded(decoder(cast(Any, type), strict=False), data))


def _decoded(reader: msgspec.json.Decoder[Any], data: bytes | memoryview) -> Any:
    try:
        return reader.decode(data)
    except UNREADABLE as error:
        raise BodyError(str(error).partition("\n")[0]) from error


def without_nulls(table: Mapping[K, T | None] | None) -> dict[K, T]:
    """Return the entries that are not null; no entries if the table itself is null."""
    return {key: value for key, value in (table or {}).items() if value is not None}
