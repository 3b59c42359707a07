"""Where the body of a request ends, found in what has come of it; gunicorn decodes and checks it when it is whole."""

import re
from collections.abc import Callable
from typing import Any, Final

from gunicorn.http.body import ChunkedReader, LengthReader

from api.transport.refusal import Refusal

BodyEnd = Callable[[bytearray], int | None]
"""From what has come behind a head, the index of the body's end, None while it is not there. Raises Refusal."""

SIZE: Final = re.compile(rb"([0-9A-Fa-f]+)[ \t]*(?:;.*)?", re.DOTALL)
LINE_MAX_BYTES: Final = 8190
CHUNKS_MOST: Final = 10_000
"""A thread takes some 10 µs for each, however few bytes it has."""


def body_end(reader: Any, limit: int) -> BodyEnd:
    """Return what finds the end of the body that gunicorn would read with `reader`. Raises Refusal."""
    if isinstance(reader, ChunkedReader):
        return _Chunks(limit)
    length: int = reader.length if isinstance(reader, LengthReader) else 0
    if length > limit:
        raise too_long(limit)
    return lambda come: length if len(come) >= length else None


def too_long(limit: int) -> Refusal:
    """Return the refusal of a body that is too long."""
    return Refusal(413, f"a body may have {limit} bytes (httpBodyMaxBytes)", "httpBodyMaxBytes")


class _Chunks:
    """Skips chunks and then trailers, up to the empty line behind them (RFC 9112 section 7.1)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = 0
        self._searched = 0
        self._chunks = 0
        self._in_trailers = False

    def __call__(self, come: bytearray) -> int | None:
        while (end := come.find(b"\r\n", self._searched)) >= 0:
            line = bytes(come[self._line : end])
            self._line = self._searched = end + 2
            if not self._in_trailers:
                self._skip(line)
            elif not line:
                return self._line
        if len(come) - self._line > LINE_MAX_BYTES:
            raise Refusal(400, f"a line between chunks has over {LINE_MAX_BYTES} bytes")
        if len(come) > self._limit:
            raise too_long(self._limit)
        self._searched = max(self._line, len(come) - 1)
        return None

    def _skip(self, line: bytes) -> None:
        match = SIZE.fullmatch(line)
        if not match:
            raise Refusal(400, "the size of a chunk is no hexadecimal number")
        size = int(match[1], 16)
        if self._line + size > self._limit:
            raise too_long(self._limit)
        self._chunks += 1
        if self._chunks > CHUNKS_MOST:
            raise Refusal(413, f"a body may come in {CHUNKS_MOST} chunks")
        self._in_trailers = size == 0
        if size:
            self._line = self._searched = self._line + size + 2
