"""Inflating zlib streams of strangers."""

import zlib

from remoting.errors import BodyError


def inflate(data: bytes, max_length: int) -> bytes:
    """The content of a whole zlib stream (RFC 1950), at most `max_length` bytes; bytes behind it are ignored.

    Raises BodyError for anything else, having inflated no more than that."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(data, max_length)
        if not stream.eof:
            content += stream.decompress(stream.unconsumed_tail, 1)
    except zlib.error as error:
        raise BodyError(f"no zlib data: {error}") from error
    if len(content) > max_length:
        raise BodyError(f"zlib data of more than {max_length} bytes")
    if not stream.eof:
        raise BodyError("zlib data cut off")
    return content
