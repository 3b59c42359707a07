"""Frame headers in RocketMQ's own compact form (serialize type 1).

code int16, language int8, version int16, opaque int32, flag int32, then the remark and the ext fields, each
after its length in bytes (int32); an ext field is a key after an int16 length and a value after an int32 length."""

from struct import Struct
from struct import error as StructError
from typing import Final

from rocketmq_remoting.errors import FrameError
from rocketmq_remoting.remoting_command import FIELDS_MOST, Command, SerializeType

_FIXED: Final = Struct(">hbhiii")
_WRITTEN: Final = Struct(">HBHiii")
_WRITTEN_SHORT: Final = Struct(">HBHiiii")

_INT32: Final = Struct(">i")
_INT16: Final = Struct(">h")
_ROCKETMQ: Final = SerializeType.ROCKETMQ


def encode_binary_header(command: Command) -> bytes:
    """Return the header as Java writes it; code and version are cut to 16 bits, language to 8."""
    code, language, version = command.code & 0xFFFF, command.language & 0xFF, command.version & 0xFFFF
    opaque, flag = command.opaque or 0, command.flag
    if not command.remark and not command.ext:
        return _WRITTEN_SHORT.pack(code, language, version, opaque, flag, 0, 0)
    note = command.remark.encode() if command.remark else b""
    ext = _encode_ext(command.ext) if command.ext else b""
    fixed = _WRITTEN.pack(code, language, version, opaque, flag, len(note))
    return b"".join((fixed, note, _INT32.pack(len(ext)), ext))


def _encode_ext(ext: dict[str, str]) -> bytes:
    parts: list[bytes] = []
    for name, value in ext.items():
        key, text = name.encode(), value.encode()
        parts += (_INT16.pack(len(key)), key, _INT32.pack(len(text)), text)
    return b"".join(parts)


def decode_binary_command(header: bytes, body: bytes) -> Command:
    """Return the command of a header and a body; FrameError("header") if a length is negative or beyond the end, or for
    too many ext fields.

    Bytes that are not UTF-8 become U+FFFD, as in Java."""
    end = len(header)
    if end < 21:
        raise FrameError("header", f"a binary header of {end} bytes")
    code, language, version, opaque, flag, length = _FIXED.unpack_from(header)
    at = 17 + length
    if length < 0 or at + 4 > end:
        raise FrameError("header", f"a remark of {length} bytes in a header of {end}")
    remark = header[17:at].decode("utf-8", "replace") if length else None
    (length,) = _INT32.unpack_from(header, at)
    at += 4
    if length < 0 or at + length > end:
        raise FrameError("header", f"ext fields of {length} bytes in a header of {end}")
    ext = _decode_ext(header, at, at + length) if length else None
    return Command(code, opaque, flag, version, language, remark, ext, body, _ROCKETMQ)


def _decode_ext(header: bytes, at: int, end: int) -> dict[str, str]:
    ext: dict[str, str] = {}
    try:
        for _ in range(FIELDS_MOST):
            if at >= end:
                return ext
            start = at + 2
            at = start + _INT16.unpack_from(header, at)[0]
            name = header[start:at]
            value = at + 4
            after = value + _INT32.unpack_from(header, at)[0]
            if not start <= at < value <= after <= end:
                raise FrameError("header", f"an ext field from byte {at} to {after} of a header of {end}")
            ext[name.decode("utf-8", "replace")] = header[value:after].decode("utf-8", "replace")
            at = after
    except StructError as error:
        raise FrameError("header", f"an ext field cut off at byte {at}") from error
    if at < end:
        raise FrameError("header", f"more than {FIELDS_MOST} ext fields")
    return ext
