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
_SMALL: Final = 16 << 10
"""Reads of fewer bytes are gathered: each kept on its own costs as much as itself when they are few."""


class FrameReader:
    """Bytes in, commands out.

    After a FrameError the stream cannot be read on: each further next_command raises again."""

    __slots__ = ("_at", "_began", "_buffer", "_gathered", "_long", "_more", "_wanted")

    def __init__(self) -> None:
        self._buffer = b""
        self._at = 0
        self._began = 0
        self._wanted = 0  # bytes of a frame whose beginning is all that `_buffer` has from `_at` on
        self._more: list[bytes | bytearray] | None = None  # what came of it since
        self._gathered = 0  # bytes of that
        self._long: tuple[bytes, bytes] | None = None  # a frame that came in pieces: up to its body, and that

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add what was received."""
        if type(data) is not bytes:
            data = bytes(data)
        if self._wanted:
            self._gather(data)
        elif self._at == len(self._buffer):
            self._buffer, self._at = data, 0
        else:
            self._buffer, self._at = self._buffer[self._at :] + data, 0

    @property
    def pending(self) -> int:
        """Bytes received and not yet given out as commands."""
        return len(self._buffer) - self._at + self._gathered

    @property
    def wanted(self) -> int:
        """Bytes of the frame whose beginning is all that there is, once that tells; else 0."""
        return self._wanted

    def next_command(self) -> Command | None:
        """The next whole command; None while more bytes are needed.

        Raises FrameError as soon as the bytes that tell are there, before the rest of the frame."""
        if self._wanted:
            if self.pending < self._wanted:
                return None
            return self._joined()
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
            self._wanted = 4 + length
            return None
        start = at + 8
        middle = start + header_length
        end = at + 4 + length
        read = decode_binary_command if word >> 24 else decode_json_command
        command = read(buffer[start:middle], buffer[middle:end])
        self._began, self._at, self._long = at, end, None
        return command

    @property
    def last_frame(self) -> bytes:
        """The whole frame of the command given out last, until more is fed or it is let go."""
        return self._buffer[self._began : self._at] if self._long is None else b"".join(self._long)

    def let_go(self) -> None:
        """Keep nothing of what was given out: frames may be big, and peers silent for long."""
        self._long = None
        if not self._wanted:
            self._buffer, self._at = self._buffer[self._at :], 0
        self._began = self._at

    def _gather(self, data: bytes) -> None:
        if self._more is None:
            self._more = []
        more = self._more
        self._gathered += len(data)
        if len(data) >= _SMALL:
            more.append(data)
        elif more and isinstance(more[-1], bytearray):
            more[-1] += data
        else:
            more.append(bytearray(data))

    def _joined(self) -> Command | None:
        """The command whose frame is whole now; its body is put together once, since it may be big."""
        buffer, at, more = self._buffer, self._at, self._more or []
        word = _LENGTH_AND_WORD.unpack_from(buffer, at)[1]
        middle = at + 8 + (word & 0xFFFFFF)
        over = self.pending - self._wanted
        if middle > len(buffer) or over >= len(more[-1]):
            self._buffer, self._at = b"".join((buffer[at:], *more)), 0
            self._begin_anew()
            return self.next_command()
        last = more.pop()
        cut = len(last) - over
        body = b"".join((buffer[middle:], *more, last[:cut]))
        more.append(last)  # should the header be none, all is as it was
        read = decode_binary_command if word >> 24 else decode_json_command
        command = read(buffer[at + 8 : middle], body)
        self._long = buffer[at:middle], body
        self._buffer, self._at = bytes(last[cut:]), 0
        self._begin_anew()
        return command

    def _begin_anew(self) -> None:
        self._wanted = self._gathered = 0
        self._more = None


def _refused(length: int) -> FrameError:
    return FrameError("too_big" if length > _LONGEST else "frame", f"a frame of {length} bytes")
