"""Requests that came before, byte for byte but for the opaque: their answers need no decoding and no encoding.

Peers ask the same again and again, and nothing in such a request differs but the number that ties the answer to it.
So an answer that is kept anyway is remembered under the frames that asked for it, with that number cut out; a hit
costs a look into a dict. What has no such place, or was never seen, takes the ordinary way.
"""

from math import inf
from struct import Struct
from typing import Final, Protocol

from msgspec.structs import replace

from remoting.command import encode_header
from remoting.errors import FrameError
from remoting.header_json import decode_json_command
from remoting.remoting_command import ONEWAY_FLAG, Command, SerializeType
from worker.answer import Answer

__all__ = ["Known", "KnownFrames", "Source"]

FRAME_MOST: Final = 512
"""Bytes of a frame worth remembering: a topic has at most 255."""
MOST: Final = 16_384
"""Frames remembered; beyond that all are forgotten and the busy ones come back at once."""
FRAME_COST: Final = 700
"""Bytes that one takes beside its own, measured."""

_WORDS: Final = Struct(">iI")
_OPAQUE: Final = b'"opaque":'
_SHORTEST: Final = 25


class Source(Protocol):
    """Who keeps the answer. While `generation` stays the same, what was true is true."""

    generation: int

    def still(self, known: "Known") -> bool:
        """Whether the answer is kept after all, though the generation has moved."""


class Known:
    """An answer, cut where the opaque goes in; `tail` is what a JSON header has after it."""

    __slots__ = ("answer", "body", "generation", "head", "key", "rest", "source", "tail", "until")

    def __init__(
        self, answer: Answer, head: bytes, rest: bytes, source: Source, key: object, until: float, tail: int
    ) -> None:
        self.answer = answer
        self.head = head
        self.rest = rest
        self.body = answer.body
        self.source = source
        self.generation = source.generation
        self.key = key
        self.until = until
        self.tail = tail


class KnownFrames:
    """Of one worker."""

    def __init__(self) -> None:
        self._known: dict[bytes, Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def answers(self, data: bytes, now: float, most: int) -> tuple[list[bytes], int, int]:
        """Pieces of the answers to the known frames that `data` begins with, how many, and how many bytes they were.

        Stops at the first frame that is not known, not whole or not valid, and at `most` bytes of answers."""
        pieces: list[bytes] = []
        known_frames = self._known
        at = count = size = 0
        length_of_data = len(data)
        while length_of_data - at >= _SHORTEST and size < most:
            length, word = _WORDS.unpack_from(data, at)
            end = at + 4 + length
            if end > length_of_data or length < _SHORTEST - 4:
                break
            if word >> 24:
                opaque = data[at + 13 : at + 17]
                frame = data[at : at + 13] + data[at + 17 : end]
                known = known_frames.get(frame)
                if known is None:
                    break
                head = known.head
            else:
                start = data.find(_OPAQUE, at + 8, end) + 9
                stop = data.find(b",", start, start + 10)
                if start < 9 or stop < 0:
                    break
                opaque = data[start:stop]
                frame = data[at + 8 : start] + data[stop:end]
                known = known_frames.get(frame)
                if known is None or known.tail != at + 8 + word - stop or not _is_number(opaque):
                    break
                digits, (whole, header) = len(opaque), _WORDS.unpack_from(known.head)
                head = _WORDS.pack(whole + digits, header + digits) + known.head[8:]
            if (known.generation != known.source.generation or now >= known.until) and not self._again(
                known, frame, now
            ):
                break
            pieces += (head, opaque, known.rest, known.body)
            size += len(known.body)
            count += 1
            at = end
        return pieces, count, at

    def keep(
        self, frame: bytes, command: Command, answer: Answer, source: Source, key: object, until: float = inf
    ) -> bytes | None:
        """Remember the answer to the frame that `command` was read from; what it is remembered under, if it is.

        `until` is a time of the clock that `answers` is asked by."""
        if len(frame) > FRAME_MOST or command.flag & ONEWAY_FLAG or answer.remark is not None:
            return None
        head = encode_header(command.reply(answer.code, ext=answer.ext), len(answer.body))
        if command.serialize_type == SerializeType.ROCKETMQ:
            name, tail, cut, after = frame[:13] + frame[17:], 0, head[:13], head[17:]
        else:
            (start, stop), (own_start, own_stop) = _number_in(frame), _number_in(head)
            whole, header = _WORDS.unpack_from(head)
            digits, end = own_stop - own_start, 8 + _WORDS.unpack_from(frame)[1]
            if not _is_the_opaque(frame, start, stop, end, command):
                return None
            name, tail = frame[8:start] + frame[stop:], end - stop
            cut = _WORDS.pack(whole - digits, header - digits) + head[8:own_start]
            after = head[own_stop:]
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[name] = Known(answer, cut, after, source, key, until, tail)
        return name

    def forget(self, frame: bytes) -> None:
        """The answer kept under what `keep` returned is no longer kept."""
        self._known.pop(frame, None)

    def _again(self, known: Known, frame: bytes, now: float) -> bool:
        if now < known.until and known.source.still(known):
            known.generation = known.source.generation
            return True
        self._known.pop(frame, None)
        return False


def _is_number(digits: bytes) -> bool:
    """Whether this is a number as JSON writes it, below the greatest int32."""
    return digits.isdigit() and (digits[0] != 48 or len(digits) == 1)


def _number_in(frame: bytes) -> tuple[int, int]:
    """Where the digits of the opaque are, as `answers` finds them; nowhere: an empty range."""
    start = frame.find(_OPAQUE, 8) + 9
    stop = frame.find(b",", start, start + 10)
    return (start, stop) if start >= 9 and stop > 0 and _is_number(frame[start:stop]) else (0, 0)


def _is_the_opaque(frame: bytes, start: int, stop: int, end: int, command: Command) -> bool:
    """Whether another number there means another opaque and nothing else."""
    other = 1 if frame[start:stop] != b"1" else 2
    changed = b"%s%d%s" % (frame[8:start], other, frame[stop:end])
    try:
        return start > 0 and decode_json_command(changed, frame[end:]) == replace(command, opaque=other)
    except FrameError:
        return False
