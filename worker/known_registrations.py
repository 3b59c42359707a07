"""Unchanged registrations (103) that came before, but for what a broker of 5.x writes anew each time.

That is the opaque, `mappingDataVersion`, and with it `bodyCrc32`; a registration that differs in nothing else has the
same signature (registry/registering.py) and asks the same of the store. It is found by its header without those
numbers, and of its body is compared what the signature is made of; so there is one for each broker, whatever becomes of
its topics. What is laid out otherwise takes the ordinary way.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final

from msgspec.structs import replace
from zlib_ng.zlib_ng import crc32, crc32_combine

from registry.options import Options
from registry.renewals import Renewals
from remoting.body_signature import MAPPING_VERSION, split_signature
from remoting.codes import RequestCode
from remoting.command import Command, decode
from remoting.errors import FrameError
from remoting.remoting_command import ONEWAY_FLAG, SerializeType
from worker.answer import Answer
from worker.known_frames import FRAME_MOST, Due, Known, cut_head

__all__ = ["KnownRegistration", "KnownRegistrations"]

FRAME_LONGEST: Final = 256_000
"""Bytes of a frame that is compared at once; uvloop's transports read no more in one piece either."""
HELD_MOST: Final = 16 << 10
"""Bytes of a frame that may wait for the store, some 70 topics; a longer one is known while nobody need be asked.
Of an answer's body as well."""
BYTES_MOST: Final = 32 << 20
"""Of all that are remembered; the oldest go first."""
COST: Final = 2100
"""Bytes that one takes beside its own, measured."""

_WORDS: Final = Struct(">iI").unpack_from
_INT32: Final = Struct(">i").unpack_from
_stamp: Final = MAPPING_VERSION.fullmatch
_begins_stamped: Final = MAPPING_VERSION.match
_CODE: Final = int(RequestCode.REGISTER_BROKER).to_bytes(2, "big")
_NO_REMARK: Final = bytes(4)
_BINARY_CRC: Final = b"\x00\x09bodyCrc32\x00\x00\x00"
_JSON_CRC: Final = b'"bodyCrc32":"'
_OPAQUE: Final = b'"opaque":'
_BRACE, _ZERO, _ONE = b"{01"

Places = tuple[int, int, int, int]
"""Of the digits of bodyCrc32 and of the opaque in a frame: where each begins and ends."""


class KnownRegistration(Known):
    """True of a connection and under options; of a body that begins with `start`, then may have a mappingDataVersion,
    and ends with so many bytes of this CRC-32."""

    __slots__ = ("connection", "cost", "crc", "length", "options", "start")

    connection: str
    options: Options
    start: bytes
    length: int
    crc: int
    cost: int


class KnownRegistrations:
    """Of one worker, by their headers; `clock` is that of `Known.until`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[bytes, KnownRegistration] = {}
        self._asking: tuple[str, Options | None] = "", None
        self.size = 0

    def __len__(self) -> int:
        return len(self._known)

    def asked_by(self, connection: str, options: Options) -> None:
        """Whose frames come now, and under which options: what was answered otherwise is not known."""
        self._asking = connection, options

    def due(self, data: bytes, at: int, end: int) -> Due | None:
        """The frame from `at` to `end` of `data`, if it is known."""
        middle = at + 8 + (_WORDS(data, at)[1] & 0xFFFFFF)
        places = _places(data, at, middle) if middle <= end else None
        if places is None:
            return None
        crc, crc_end, opaque, opaque_end = places
        known = self._known.get(_name(data, at, places, middle))
        connection, options = self._asking
        if known is None or known.connection != connection or known.options is not options:
            return None
        if end - at > HELD_MOST and not known.holds(self._clock()):
            return None
        start, stop = middle + len(known.start), end - known.length
        stamped = stop > start
        if (
            stop < start
            or not data.startswith(known.start, middle)
            or not (_stamp(data, start, stop) if stamped else not _begins_stamped(data, start))
            or crc32(memoryview(data)[stop:end]) != known.crc
            or data[crc:crc_end] != b"%d" % _body_crc32(data[middle:stop], known)
        ):
            return None
        return Due(known, data[opaque:opaque_end], data[at:end])

    def keep(
        self,
        frame: bytes,
        command: Command,
        answer: Answer,
        renewals: Renewals,
        connection: str,
        options: Options,
    ) -> None:
        """Remember the answer that the frame of `command` got over a connection, if it is one to remember."""
        if not FRAME_MOST < len(frame) - 4 <= FRAME_LONGEST or len(answer.body) > HELD_MOST:
            return
        if command.flag & ONEWAY_FLAG or answer.again is None:
            return
        middle = len(frame) - len(command.body)
        places, split = _places(frame, 0, middle), split_signature(command.body)
        if places is None or split is None or not _are_those(places, frame[:middle], command):
            return
        name, (head, tail) = _name(frame, 0, places, middle), cut_head(command, answer)
        binary = command.serialize_type == SerializeType.ROCKETMQ
        known = KnownRegistration(name, answer, head, tail, -1 if binary else 0, renewals)
        known.until = renewals.until(answer.again.item)
        known.connection, known.options = connection, options
        known.start, known.length = split[1] + split[0] + b",", len(split[2])
        known.crc = crc32(split[2])
        known.cost = len(name) + len(known.start) + len(answer.body) + COST
        self._drop(name)
        self._known[name] = known
        self.size += known.cost
        while self.size > BYTES_MOST:
            self._drop(next(iter(self._known)))

    def forget(self, known: Known) -> None:
        """The store has another answer now."""
        if self._known.get(known.name) is known:
            self._drop(known.name)

    def _drop(self, name: bytes) -> None:
        known = self._known.pop(name, None)
        if known is not None:
            self.size -= known.cost


def _places(data: bytes, at: int, middle: int) -> Places | None:
    """In the frame at `at` whose body begins at `middle`; None for what is not laid out as peers write it."""
    if data[at + 4]:
        if data[at + 8 : at + 10] != _CODE or data[at + 21 : at + 25] != _NO_REMARK:
            return None
        length = data.find(_BINARY_CRC, at + 29, middle) + len(_BINARY_CRC)
        if length < len(_BINARY_CRC) or length >= middle or at + 29 + _INT32(data, at + 25)[0] != middle:
            return None
        end = length + 1 + data[length]
        return (length + 1, end, at + 13, at + 17) if end <= middle else None
    crc = data.find(_JSON_CRC, at + 8, middle) + len(_JSON_CRC)
    crc_end = data.find(b'"', crc, crc + 11)
    opaque = data.find(_OPAQUE, crc_end, middle) + len(_OPAQUE)
    if data[at + 8] != _BRACE or crc < len(_JSON_CRC) or crc_end < 0 or opaque < len(_OPAQUE):
        return None
    opaque_end = data.find(b",", opaque, opaque + 10)
    number = data[opaque:opaque_end]
    if opaque_end > middle or not number.isdigit() or (number[0] == _ZERO and len(number) > 1):
        return None
    return crc, crc_end, opaque, opaque_end


def _name(data: bytes, at: int, places: Places, middle: int) -> bytes:
    """The header without those numbers, and without the lengths that depend on how long they are.

    Each was the first of its kind, so no other header with other numbers cut out has the same name."""
    crc, crc_end, opaque, opaque_end = places
    if data[at + 4]:
        return (
            data[at + 8 : opaque]
            + data[opaque_end : at + 25]
            + data[at + 29 : crc - 1]
            + data[crc_end:middle]
        )
    return data[at + 8 : crc] + data[crc_end:opaque] + data[opaque_end:middle]


def _body_crc32(beginning: bytes, known: KnownRegistration) -> int:
    """What bodyCrc32 is of a body with this beginning, as remoting.registration has it."""
    return crc32_combine(crc32(beginning), known.crc, known.length) & 0x7FFFFFFF


def _are_those(places: Places, head: bytes, command: Command) -> bool:
    """Whether other digits in these places of a frame mean another bodyCrc32 and another opaque, and nothing else."""
    crc_end, opaque_end = places[1], places[3]
    changed = bytearray(head)
    for last in (crc_end - 1, opaque_end - 1):
        changed[last] = _ZERO if changed[last] == _ONE else _ONE
    opaque, crc = changed[places[2] : opaque_end], changed[places[0] : crc_end]
    number = int.from_bytes(opaque, "big", signed=True) if head[4] else int(opaque)
    ext = (command.ext or {}) | {"bodyCrc32": crc.decode("latin-1")}
    try:
        return decode(bytes(changed[4:])) == replace(command, opaque=number, ext=ext, body=b"")
    except FrameError:
        return False
