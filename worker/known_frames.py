"""Requests that came before, byte for byte but for the opaque: their answers need no decoding and no encoding.

Peers ask the same again and again, and nothing in such a request differs but the number that ties the answer to it.
So an answer that is kept anyway is remembered under the frames that asked for it, with that number cut out; a hit
costs a look into a dict. A beat (904, 322) whose lease was not renewed just now costs one item of a script as well.
What has no such number in its place, or was never seen, takes the ordinary way.
"""

from collections.abc import Callable
from math import inf
from struct import Struct
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from remoting.command import encode_header
from remoting.errors import FrameError
from remoting.header_json import decode_json_command
from remoting.remoting_command import ONEWAY_FLAG, Command, SerializeType
from worker.answer import Answer
from worker.counters import Counters
from worker.route_view import Key

__all__ = ["FRAME_MOST", "Due", "Found", "Known", "KnownFrames", "Source", "cut_head"]

FRAME_MOST: Final = 512
"""Bytes of a frame worth remembering: a topic has at most 255."""
MOST: Final = 32_768
"""Frames remembered; beyond that all are forgotten and the busy ones come back at once."""
DUE_MOST: Final = 256
"""Beats of one connection that may be asked of the store at once."""
FRAME_COST: Final = 700
"""Bytes that one takes beside its own, measured."""

Beat = tuple[int | str | bytes, ...]
"""Which beat of which member: the request's code, and what the script is asked."""

_WORDS: Final = Struct(">iI")
_OPAQUE: Final = b'"opaque":'
_SHORTEST: Final = 25
_ZERO: Final = ord("0")
_words: Final = _WORDS.unpack_from


class Source(Protocol):
    """Who keeps the answers. While `generation` stays the same, what was true is true."""

    generation: int


class Known:
    """An answer, cut where the opaque goes in; `tail` is what a JSON header has after it, -1 for a binary one.

    True until `until`, as long as the source's generation is `generation`. When it may no longer be, a kept answer
    (`key`) is looked up, and a beat (`again`) asks the store."""

    __slots__ = (
        "again",
        "answer",
        "beat",
        "body",
        "generation",
        "heads",
        "key",
        "name",
        "rest",
        "source",
        "tail",
        "until",
    )

    def __init__(
        self, name: bytes, answer: Answer, head: bytes, rest: bytes, tail: int, source: Source
    ) -> None:
        self.name = name
        self.answer = answer
        self.again = answer.again
        self.heads = {0: head}
        self.rest = rest
        self.body = answer.body
        self.tail = tail
        self.source = source
        self.generation = source.generation
        self.until = 0.0 if answer.again else inf
        self.key: Key | None = None
        self.beat: Beat | None = None

    def head(self, digits: int) -> bytes:
        """What comes before an opaque of so many digits, 0 for a binary one: its length counts in those in front."""
        head = self.heads.get(digits)
        if head is None:
            whole, header = _WORDS.unpack_from(self.heads[0])
            head = self.heads[digits] = _WORDS.pack(whole + digits, header + digits) + self.heads[0][8:]
        return head

    def pieces(self, opaque: bytes) -> tuple[bytes, ...]:
        """The whole answer to the request with this opaque, as it was written there."""
        return self.head(0 if self.tail < 0 else len(opaque)), opaque, self.rest, self.body

    def holds(self, now: float) -> bool:
        """Whether the answer is true without anybody being asked."""
        return self.generation == self.source.generation and now < self.until


class Due(NamedTuple):
    """A request whose answer is known if the store says so."""

    known: Known
    opaque: bytes
    frame: bytes


Found = tuple[list[bytes], int, list[Due]]
"""What some bytes begin with: pieces of the answers to known requests; the length of those; what is due of them."""


class KnownFrames:
    """Of one worker; `still` tells whether the answer is kept as it was, though its source's generation has moved.

    `known` are the answers by what is left of a frame without its opaque; `answered` counts them."""

    def __init__(self, still: Callable[[Known], bool], counters: Counters) -> None:
        self._still = still
        self._counters = counters
        self.known: dict[bytes, Known] = {}
        self._beats: dict[Beat, Known] = {}
        self.longer: Callable[[bytes, int, int], Due | None] = lambda data, at, end: None
        """What is known of a frame longer than FRAME_MOST, from `at` to `end` of some bytes."""

    def __len__(self) -> int:
        return len(self.known)

    def answers(self, data: bytes, now: float, most: int) -> Found:
        """The known frames that `data` begins with.

        Stops at the first one that is not known or not whole, at `most` bytes of answers, and at many due."""
        pieces: list[bytes] = []
        due: list[Due] = []
        known_as, find = self.known.get, data.find
        at = count = size = 0
        last = len(data) - _SHORTEST
        while at <= last and size < most and len(due) < DUE_MOST:
            length, word = _words(data, at)
            end = at + 4 + length
            if end > len(data) or length < _SHORTEST - 4:
                break
            if length > FRAME_MOST:
                long = self.longer(data, at, end)
                if long is None:
                    break
                due.append(long)
                at = end
                continue
            if word >> 24:
                digits, opaque = 0, data[at + 13 : at + 17]
                known = known_as(data[at : at + 13] + data[at + 17 : end])
                if known is None:
                    break
            else:
                start = find(_OPAQUE, at + 8, end) + 9
                stop = find(b",", start, start + 10)
                digits, opaque = stop - start, data[start:stop]
                if start < 9 or digits < 1 or not opaque.isdigit() or (digits > 1 and opaque[0] == _ZERO):
                    break
                known = known_as(data[at + 8 : start] + data[stop:end])
                if known is None or known.tail != at + 8 + word - stop:
                    break
            if (known.generation == known.source.generation and now < known.until) or self.again(known):
                pieces += (known.head(digits), opaque, known.rest, known.body)
                size += len(known.body)
                count += 1
            elif known.again is not None:
                due.append(Due(known, opaque, data[at:end]))
            else:
                break
            at = end
        self.answered(count)
        return pieces, at, due

    def answered(self, count: int) -> None:
        """So many requests were answered from here."""
        self._counters.known_frames += count

    def keep(self, frame: bytes, command: Command, answer: Answer, source: Source) -> Known | None:
        """Remember the answer to the frame that `command` was read from, if it is one to remember."""
        if len(frame) > FRAME_MOST or command.flag & ONEWAY_FLAG or answer.remark is not None:
            return None
        head, rest = cut_head(command, answer)
        if command.serialize_type == SerializeType.ROCKETMQ:
            known = Known(frame[:13] + frame[17:], answer, head, rest, -1, source)
        else:
            (start, stop), end = _number_in(frame), 8 + _WORDS.unpack_from(frame)[1]
            if not _is_the_opaque(frame, start, stop, end, command):
                return None
            known = Known(frame[8:start] + frame[stop:], answer, head, rest, end - stop, source)
        if len(self.known) >= MOST:
            self.known.clear()
            self._beats.clear()
        self.known[known.name] = known
        if answer.again is not None:
            self._replace(known, (command.code, *answer.again.item.args))
        return known

    def _replace(self, known: Known, beat: Beat) -> None:
        """A member's last beat of a kind is the one to come again: 322 names a data version, and that moves on."""
        before = self._beats.pop(beat, None)
        if before is not None and before is not known:
            self.forget(before)
        known.beat = beat
        self._beats[beat] = known

    def forget(self, known: Known) -> None:
        """Its answer is no longer kept, or no longer true."""
        if self.known.get(known.name) is known:
            del self.known[known.name]
        if known.beat is not None and self._beats.get(known.beat) is known:
            del self._beats[known.beat]

    def again(self, known: Known) -> bool:
        """Whether an answer is true, though its source's generation has moved."""
        if known.again is not None:
            return False
        if self._still(known):
            known.generation = known.source.generation
            return True
        self.forget(known)
        return False


def cut_head(command: Command, answer: Answer) -> tuple[bytes, bytes]:
    """What an answer has before its opaque and after it, up to its body: lengths as if a JSON opaque had no digits."""
    head = encode_header(command.reply(answer.code, ext=answer.ext), len(answer.body))
    if command.serialize_type == SerializeType.ROCKETMQ:
        return head[:13], head[17:]
    start, stop = _number_in(head)
    whole, header = _WORDS.unpack_from(head)
    digits = stop - start
    return _WORDS.pack(whole - digits, header - digits) + head[8:start], head[stop:]


def _number_in(frame: bytes) -> tuple[int, int]:
    """Where the digits of the opaque are, as `answers` finds them; nowhere: an empty range."""
    start = frame.find(_OPAQUE, 8) + 9
    stop = frame.find(b",", start, start + 10)
    return (start, stop) if start >= 9 and frame[start:stop].isdigit() else (0, 0)


def _is_the_opaque(frame: bytes, start: int, stop: int, end: int, command: Command) -> bool:
    """Whether another number there means another opaque and nothing else."""
    other = 1 if frame[start:stop] != b"1" else 2
    changed = b"%s%d%s" % (frame[8:start], other, frame[stop:end])
    try:
        return start > 0 and decode_json_command(changed, frame[end:]) == replace(command, opaque=other)
    except FrameError:
        return False
