"""Encoding and decoding of commands as frames.

A frame is `length` (int32: bytes that follow), a header word (top byte serialize type, low 24 bits header
length), the header and the body; all numbers are big-endian."""

from struct import Struct
from typing import Final

from rocketmq_remoting.errors import FrameError
from rocketmq_remoting.header_binary import decode_binary_command, encode_binary_header
from rocketmq_remoting.header_json import decode_json_command, encode_json_header
from rocketmq_remoting.remoting_command import Command, SerializeType

__all__ = ["Command", "SerializeType", "decode", "encode", "encode_header", "refused_word"]

_LENGTH_AND_WORD: Final = Struct(">iI")
_WORD: Final = Struct(">I")


def encode(command: Command) -> bytes:
    """Return the whole frame."""
    return encode_header(command, len(command.body)) + command.body


def encode_header(command: Command, body_length: int) -> bytes:
    """Return the frame without its body, for a body of `body_length` bytes that is sent right after it."""
    kind = command.serialize_type
    header = encode_binary_header(command) if kind else encode_json_header(command)
    length = len(header)
    return _LENGTH_AND_WORD.pack(4 + length + body_length, kind << 24 | length) + header


def decode(frame: bytes | memoryview) -> Command:
    """Return the command in a frame without its length word. Raises FrameError."""
    length = len(frame)
    if length < 4:
        raise FrameError("frame", f"a frame of {length} bytes")
    (word,) = _WORD.unpack_from(frame)
    end = 4 + (word & 0xFFFFFF)
    if word > 0x1FFFFFF or not 4 < end <= length:
        raise refused_word(word, length)
    read = decode_binary_command if word >> 24 else decode_json_command
    return read(bytes(frame[4:end]), bytes(frame[end:]))


def refused_word(word: int, length: int) -> FrameError:
    """Return the error of a frame of `length` bytes with an invalid header word."""
    kind, header_length = word >> 24, word & 0xFFFFFF
    if kind > 1:
        return FrameError("frame", f"serialize type {kind}")
    return FrameError("frame", f"a header of {header_length} bytes in a frame of {length}")
