"""Reading commands from a stream of bytes: no socket, no thread, no clock."""

from struct import Struct
from typing import Final

from rocketmq_remoting.command import refused_word
from rocketmq_remoting.errors import FrameError
from rocketmq_remoting.header_binary import decode_binary_command
from rocketmq_remoting.header_json import decode_json_command
from rocketmq_remoting.remoting_command import Command

__all__ = ["FRAME_MAX_LENGTH", "HEADER_MAX_LENGTH", "FrameError", "FrameReader"]

FRAME_MAX_LENGTH: Final = 16_777_216
"""Most bytes of a frame, length word included (com.rocketmq.remoting.frameMaxLength)."""

HEADER_MAX_LENGTH: Final = 1 << 20
"""Most bytes of a header; peers send a few hundred, and decoding takes 1 µs per 10 bytes."""

_LENGTH: Final = Struct(">i")
_LENGTH_AND_WORD: Final = Struct(">iI")
_LONGEST: Final = FRAME_MAX_LENGTH - 4
_SMALL: Final = 16 << 10
"""Reads of fewer bytes are joined: as objects of their own, small reads would double the memory."""


class FrameReader:
    """Takes received bytes with `feed` and returns commands with `next_command`.

    A FrameError is final: each further next_command raises it again."""

    __slots__ = ("_at", "_began", "_buffer", "_gathered", "_long", "_more", "_wanted")

    def __init__(self) -> None:
        self._buffer = b""
        self._at = 0
        self._began = 0
        self._wanted = 0  # length of an incomplete frame that starts at `_at`; 0 if unknown
        self._more: list[bytes | bytearray] | None = None  # later bytes of that frame
        self._gathered = 0  # their length
        self._long: tuple[bytes, bytes] | None = (
            None  # the last frame if it came in several reads: head, body
        )

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Append received bytes."""
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
        """Number of received bytes that were not returned in commands yet."""
        return len(self._buffer) - self._at + self._gathered

    @property
    def wanted(self) -> int:
        """Length of the incomplete frame at the end of the stream, 0 while unknown."""
        return self._wanted

    def next_command(self) -> Command | None:
        """Return the next complete command, or None while more bytes are needed.

        Raises FrameError as soon as the length or header word is invalid, without waiting for the rest."""
        if self._wanted:
            if self.pending < self._wanted:
                return None
            return self._join()
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
        """The frame of the command returned last, until `feed`, `skip` or `drop_consumed`."""
        return self._buffer[self._began : self._at] if self._long is None else b"".join(self._long)

    @property
    def last_length(self) -> int:
        """Bytes of the command returned last, until `feed`, `skip` or `drop_consumed`."""
        return self._at - self._began if self._long is None else sum(map(len, self._long))

    def rest(self) -> tuple[bytes, int]:
        """Return bytes of the stream, and where in them the next frame begins; it may be incomplete there."""
        return self._buffer, self._at

    def skip(self, length: int) -> None:
        """Go on behind whole frames of so many bytes, which were read from `rest`."""
        self._at += length

    def drop_consumed(self) -> None:
        """Free the bytes of returned commands: frames may be big and connections idle for long. While more bytes than
        these are pending they stay, so that each byte is moved once on average."""
        self._long = None
        if not self._wanted and 2 * self._at >= len(self._buffer):
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

    def _join(self) -> Command | None:
        """Return the command whose frame is complete now; its body, which may be big, is joined once."""
        buffer, at, more = self._buffer, self._at, self._more or []
        word = _LENGTH_AND_WORD.unpack_from(buffer, at)[1]
        middle = at + 8 + (word & 0xFFFFFF)
        over = self.pending - self._wanted
        if middle > len(buffer) or over >= len(more[-1]):
            self._buffer, self._at = b"".join((buffer[at:], *more)), 0
            self._reset_gathered()
            return self.next_command()
        last = more.pop()
        cut = len(last) - over
        body = b"".join(filter(None, (buffer[middle:], *more, last[:cut])))  # a single one is not copied
        more.append(last)  # the state is unchanged if the header is invalid
        read = decode_binary_command if word >> 24 else decode_json_command
        command = read(buffer[at + 8 : middle], body)
        self._long = buffer[at:middle], body
        self._buffer, self._at = bytes(last[cut:]), 0
        self._reset_gathered()
        return command

    def _reset_gathered(self) -> None:
        self._wanted = self._gathered = 0
        self._more = None


def _refused(length: int) -> FrameError:
    return FrameError("too_big" if length > _LONGEST else "frame", f"a frame of {length} bytes")
