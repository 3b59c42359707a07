"""Inflating zlib streams of untrusted peers."""

import zlib
from typing import Final

from rocketmq_remoting.cooperative import Cooperative
from rocketmq_remoting.errors import BodyError

_INPUT_BYTES: Final = 16 << 10
_OUTPUT_BYTES: Final = 128 << 10
"""Most bytes of input and output of one step: about 0.2 ms."""


def inflate_cooperatively(data: bytes, max_length: int) -> Cooperative[bytearray]:
    """Return the content of a zlib stream (RFC 1950), at most `max_length` bytes; bytes after the stream are ignored.

    Raises BodyError for any other data; inflates at most `max_length` + 1 bytes."""
    stream = zlib.decompressobj()
    content = bytearray()
    try:
        for at in range(0, len(data), _INPUT_BYTES):
            waiting = data[at : at + _INPUT_BYTES]
            while True:
                most = min(_OUTPUT_BYTES, max_length + 1 - len(content))
                block = stream.decompress(waiting, most)
                content += block
                if len(content) > max_length:
                    raise BodyError(f"zlib data of more than {max_length} bytes")
                if stream.eof:
                    return content
                yield
                waiting = stream.unconsumed_tail
                if not waiting and len(block) < most:
                    break  # the decompressor has no more output
    except zlib.error as error:
        raise BodyError(f"no zlib data: {error}") from error
    raise BodyError("zlib data cut off")
