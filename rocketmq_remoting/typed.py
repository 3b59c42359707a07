"""JSON and plain values as typed ones, by msgspec, in any thread.

msgspec reads a type where it is used for the first time, and has its class hold what it read before that is whole:
two threads that use a type at once for the first time end the process with a segmentation fault (msgspec 0.22.0,
`StructInfo_Convert`). Here one type is read at a time. A decoder made while a module is imported needs none of this.
"""

import threading
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec

T = TypeVar("T")
_one_at_a_time: Final = threading.Lock()


def decoded(data: bytes | memoryview | str, kind: type[T]) -> T:
    """Return the value of strict JSON. Raises msgspec.DecodeError, and ValidationError if it is no `kind`."""
    return cast(T, decoder(cast(Any, kind)).decode(data))


def converted(value: Any, kind: type[T], *, strict: bool = True, str_keys: bool = False) -> T:
    """Return `value`, of plain types, as `kind`; arguments as msgspec.convert. Raises msgspec.ValidationError."""
    decoder(cast(Any, kind))
    return msgspec.convert(value, kind, strict=strict, str_keys=str_keys)


@cache
def decoder(kind: Any, *, strict: bool = True) -> msgspec.json.Decoder[Any]:
    """Return the decoder of JSON to `kind`; if not `strict`, numbers may be text."""
    with _one_at_a_time:
        return msgspec.json.Decoder(kind, strict=strict)
