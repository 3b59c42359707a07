"""Cutting a stream of bytes into commands: no socket, no thread, no clock."""

from struct import Struct
from typing import Final

from remoting.command import refused_word
from remoting.errors import FrameError
from remoting.header_binary import decode_binary_command
from remoting.header_json import decode_json_command
from remoting.remoting_command import Command

__all__ = ["FRAME_MAX_LENGTH", "HEADER_MAX_LENGTH", "FrameError", "FrameReader"]

FRAME_MAX_LENGTH: Final = 16_777_216
"""Bytes of the biggest frame, length word included (com.rocketmq.remoting.frameMaxLength)."""

HEADER_MAX_LENGTH: Final = 1 << 20
"""Bytes of the biggest header that is read; peers send some hundred, and decoding takes a µs for ten."""

_LENGTH: Final = Struct(">i")
_LENGTH_AND_WORD: Final = Struct(">iI")
_LONGEST: Final = FRAME_MAX_LENGTH - 4


class FrameReader:
    """Bytes in, commands out.

    After a FrameError the stream cannot be read on: each further next_command raises again."""

    __slots__ = ("_at", "_began", "_buffer")

    def __init__(self) -> None:
        # What starts on a frame's edge is kept as it came; only pieces of a frame are gathered.
        self._buffer: bytes | bytearray = b""
        self._at = 0
        self._began = 0

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add what was received."""
        if self._at == len(self._buffer):
            self._buffer = data if type(data) is bytes else bytes(data)
        else:
            if isinstance(self._buffer, bytearray):
                del self._buffer[: self._at]
            else:
                self._buffer = bytearray(self._buffer[self._at :])
            self._buffer += data
        self._at = 0

    @property
    def pending(self) -> int:
        """Bytes received and not yet given out as commands."""
        return len(self._buffer) - self._at

    def next_command(self) -> Command | None:
        """The next whole command; None while more bytes are needed.

        Raises FrameError as soon as the bytes that tell are there, before the rest of the frame."""
        buffer, at = self._buffer, self._at
        pending = len(buffer) - at
        if pending < 8:
            if pending >= 4 and not 4 <= (length := _LENGTH.unpack_from(buffer, at)[0]) <= _LONGEST:
                raise _refused(length)
            return None
        length, word = _LENGTH_AND_WORD.unpack_from(buffer, at)
        if not 4 <= length <= _LONGEST:
            raise _refused(length)
        header_length = word & 0xFFFFFF
        if word > 0x1FFFFFF or not 0 < header_length <= length - 4:
            raise refused_word(word, length)
        if header_length > HEADER_MAX_LENGTH:
            raise FrameError("header", f"a header of {header_length} bytes")
        if pending < 4 + length:
            return None
        start = at + 8
        middle = start + header_length
        end = at + 4 + length
        read = decode_binary_command if word >> 24 else decode_json_command
        if type(buffer) is bytes:
            command = read(buffer[start:middle], buffer[middle:end])
        else:
            with memoryview(buffer) as view:
                command = read(bytes(view[start:middle]), bytes(view[middle:end]))
        self._began, self._at = at, end
        return command

    @property
    def last_frame(self) -> bytes:
        """The whole frame of the command given out last, until more is fed."""
        return bytes(self._buffer[self._began : self._at])


def _refused(length: int) -> FrameError:
    return FrameError("too_big" if length > _LONGEST else "frame", f"a frame of {length} bytes")
