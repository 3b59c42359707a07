"""Inflating zlib streams of strangers."""

import zlib
from typing import Final

from remoting.errors import BodyError
from remoting.steps import Steps

_TAKEN_BYTES: Final = 16 << 10
_GIVEN_BYTES: Final = 128 << 10
"""At most so many in and out in one step: some 0.2 ms."""


def inflating(data: bytes, max_length: int) -> Steps[bytearray]:
    """The content of a whole zlib stream (RFC 1950), at most `max_length` bytes; bytes behind it are ignored.

    Raises BodyError for anything else, having inflated no more than that."""
    stream = zlib.decompressobj()
    content = bytearray()
    try:
        for at in range(0, len(data), _TAKEN_BYTES):
            waiting = data[at : at + _TAKEN_BYTES]
            while True:
                most = min(_GIVEN_BYTES, max_length + 1 - len(content))
                piece = stream.decompress(waiting, most)
                content += piece
                if len(content) > max_length:
                    raise BodyError(f"zlib data of more than {max_length} bytes")
                if stream.eof:
                    return content
                yield
                waiting = stream.unconsumed_tail
                if not waiting and len(piece) < most:
                    break  # nothing is left inside either
    except zlib.error as error:
        raise BodyError(f"no zlib data: {error}") from error
    raise BodyError("zlib data cut off")
