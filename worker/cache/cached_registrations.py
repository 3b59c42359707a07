"""Cached registrations: replies to unchanged registrations (103), whatever a broker of 5.x changes in each.

That is the opaque, `mappingDataVersion`, and with it `bodyCrc32` and the `Signature` of its key; a registration that
differs in nothing else has the same signature in the registry (`registry.registration.request`) and asks the same of
the store. It is found by its header without these, and of its body is compared what that signature is made of; so there
is one for each broker, whatever becomes of its topics. Who signed is verified each time: the reply is for the principal
that got the first one. A frame that is laid out otherwise is decoded.

One with the same header and other topics goes the straight way (`registry.registration.straight`) where it can.
"""

import re
from collections.abc import Callable, Mapping
from struct import Struct
from sys import getsizeof
from typing import Final

from msgspec.structs import replace
from zlib_ng.zlib_ng import crc32, crc32_combine

from access.proof import Proof
from registry.caching.bounded import Bounded
from registry.options.catalogue import Options
from registry.registration.renewals import Renewals
from registry.registration.request import RegisterContext
from registry.registration.short_cut import renewal_after
from registry.registration.straight import Change, Split
from rocketmq_remoting.acl_signature import ACCESS_KEY, SIGNATURE
from rocketmq_remoting.body_signature import MAPPING_VERSION, split_signature
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, decode
from rocketmq_remoting.errors import BodyError, FrameError
from rocketmq_remoting.registration import as_body_crc32
from rocketmq_remoting.remoting_command import ONEWAY_FLAG, SerializeType
from worker.cache.cached_requests import FRAME_MOST, CachedReply
from worker.cache.request_shapes import OPAQUE
from worker.counters import Counters
from worker.reply import Reply

__all__ = ["CachedRegistration", "CachedRegistrations"]

FRAME_LONGEST: Final = 256_000
"""Bytes of a frame that is compared at once; uvloop's transports read no more at once either."""
WAITING_MOST: Final = 16 << 10
"""Bytes of a frame that may wait for the store, some 70 topics; a longer one is answered only while its stamp is valid.
Of a reply's body as well."""
BYTES_MOST: Final = 32 << 20
"""Bytes of all of them."""
COST: Final = 3500
"""Bytes that one takes beside its own, measured."""
FIELD_COST: Final = 90
"""Bytes of each field of one with a key, beside its name and its value."""
CRC: Final = "bodyCrc32"

_WORDS: Final = Struct(">iI").unpack_from
_INT32: Final = Struct(">i").unpack_from
_stamp: Final = MAPPING_VERSION.fullmatch
_begins_stamped: Final = MAPPING_VERSION.match
_CODE: Final = int(RequestCode.REGISTER_BROKER).to_bytes(2, "big")
_BINARY: Final = int(SerializeType.ROCKETMQ)
_NO_REMARK: Final = bytes(4)
_BINARY_CRC: Final = b"\x00\x09bodyCrc32\x00\x00\x00"
_JSON_CRC: Final = b'"bodyCrc32":"'
_BINARY_SIGNATURE: Final = b"\x00\x09Signature\x00\x00\x00\x1c"
_JSON_SIGNATURE: Final = b'"Signature":"'
_signature: Final = re.compile(rb"[0-9A-Za-z+/]{27}=").match
"""Of HMAC-SHA1, in Base64."""
_BRACE, _ZERO, _ONE = b"{01"

Places = tuple[int, int, int, int, int, int]
"""Where the digits of bodyCrc32 begin and end in a frame, those of the opaque, and the signature, which has no length
where there is none."""
Proves = Callable[[Mapping[str, str], bytes, Proof | None], bool]
"""Whether these fields and this body prove what those of another request did: `worker.guard.Guard.proves`."""
Changes = Callable[[RegisterContext, bytes, Split, int], Change | None]
"""What a registration of a kind changes that has this body, as split and with its CRC-32, or None."""


class CachedRegistration(CachedReply):
    """A reply to a connection under options, and to a body that begins with `start`, may have a mappingDataVersion
    then, and ends with so many bytes of this CRC-32. `fields` are those of one with a key, `proof` what that proved;
    `front` is what the body has before its data version."""

    __slots__ = ("connection", "crc", "fields", "front", "length", "options", "proof", "start")

    connection: str
    options: Options
    fields: Mapping[str, str] | None
    proof: Proof | None
    front: bytes
    start: bytes
    length: int
    crc: int

    def describe(self, split: Split) -> None:
        """Note the body that the reply is to."""
        version, self.front, rest = split
        self.start = self.front + version + b","
        self.length, self.crc = len(rest), crc32(rest)


class CachedRegistrations:
    """The cached registrations of one worker, by their headers; `clock` is that of their stamps, `changes` says what
    another body changes."""

    def __init__(
        self,
        clock: Callable[[], float],
        counters: Counters,
        proves: Proves,
        changes: Changes = lambda *_: None,
    ) -> None:
        self._clock = clock
        self._counters = counters
        self._proves = proves
        self._changes = changes
        self.replies: Bounded[bytes, CachedRegistration] = Bounded(BYTES_MOST, _cost)
        self._asking: tuple[str, Options | None] = "", None

    def __len__(self) -> int:
        return len(self.replies)

    def set_connection(self, connection: str, options: Options) -> None:
        """Set the connection whose frames come now, and the options: replies of others are not true of them."""
        self._asking = connection, options

    def find(self, data: bytes, at: int, end: int) -> tuple[CachedRegistration, bytes, Change | None] | None:
        """Return the cached reply to the frame from `at` to `end` of `data`, the frame's opaque, and what has to be
        written before; or None."""
        middle = at + 8 + (_WORDS(data, at)[1] & 0xFFFFFF)
        places = _places(data, at, middle) if middle <= end else None
        if places is None:
            return None
        crc, crc_end, opaque, opaque_end, signed, signed_end = places
        cached = self.replies.get(_name(data, at, places, middle))
        connection, options = self._asking
        if cached is None or cached.connection != connection or cached.options is not options:
            return None
        if end - at > WAITING_MOST and not cached.is_valid(self._clock()):
            return None
        digits, change = data[crc:crc_end], None
        if not _is_unchanged(cached, data, middle, end, digits):
            change = self._change(cached, data[middle:end], digits) if end - at <= WAITING_MOST else None
            if change is None:
                return None
        if cached.fields is not None:
            new = {CRC: digits.decode(), SIGNATURE: data[signed:signed_end].decode()}
            if not self._proves({**cached.fields, **new}, data[middle:end], cached.proof):
                return None  # the guard refuses it, and says why
        return cached, data[opaque:opaque_end], change

    def _change(self, cached: CachedRegistration, body: bytes, digits: bytes) -> Change | None:
        kind = None if cached.renewal is None else cached.renewal.context
        split = None if kind is None else split_signature(body)
        if kind is None or split is None or split[1] != cached.front:
            return None
        crc = crc32(body)
        if digits != b"%d" % as_body_crc32(crc):
            return None
        try:
            return self._changes(kind, body, split, crc)
        except BodyError:
            return None

    def changed(self, cached: CachedRegistration, change: Change) -> None:
        """Have a reply be to the registration whose change is written, from now on."""
        assert cached.renewal is not None
        cached.describe(change.split)
        cached.renewal, cached.until = renewal_after(cached.renewal, change.writing.context), 0.0
        cached.body_bytes = change.body_bytes
        cached.uses = self._counters.uses(cached.code, change.body_bytes)

    def keep(
        self,
        frame: bytes,
        command: Command,
        reply: Reply,
        renewals: Renewals,
        connection: str,
        options: Options,
        proof: Proof | None = None,
    ) -> None:
        """Cache the reply that the frame of `command` got over a connection, if it may be cached; `proof` is what its
        signature proved."""
        if not FRAME_MOST + 4 < len(frame) <= FRAME_LONGEST or len(reply.body) > WAITING_MOST:
            return
        if command.flag & ONEWAY_FLAG or reply.renewal is None:
            return
        middle = len(frame) - len(command.body)
        places, split = _places(frame, 0, middle), split_signature(command.body)
        if places is None or split is None or not _are_understood(places, frame[:middle], command):
            return
        name = _name(frame, 0, places, middle)
        tail = -1 if command.serialize_type == SerializeType.ROCKETMQ else 0
        cached = CachedRegistration(
            *(name, command, reply, tail, renewals, self._counters, len(command.body)),
            proven=proof is not None,
        )
        cached.fields = command.ext if command.ext and ACCESS_KEY in command.ext else None
        cached.proof = proof
        cached.until = renewals.until(reply.renewal.item)
        cached.connection, cached.options = connection, options
        cached.describe(split)
        self.replies.put(name, cached)

    def clear(self) -> None:
        """Have everything decoded again."""
        self.replies.clear()

    def drop(self, cached: CachedReply) -> None:
        """Remove a reply that the store does not confirm."""
        if self.replies.entries.get(cached.request) is cached:
            self.replies.pop(cached.request)


def _cost(name: bytes, cached: CachedRegistration) -> int:
    """A text that is not ASCII takes up to four bytes a character."""
    fields = cached.fields or {}
    texts = sum(map(getsizeof, fields)) + sum(map(getsizeof, fields.values()))
    return COST + len(name) + 2 * len(cached.front) + len(cached.parts[2]) + FIELD_COST * len(fields) + texts


def _is_unchanged(cached: CachedRegistration, data: bytes, middle: int, end: int, digits: bytes) -> bool:
    """Return whether the body from `middle` to `end` is the one that the reply is to, of which these are bodyCrc32."""
    start, stop = middle + len(cached.start), end - cached.length
    stamped = stop > start
    return (
        stop >= start
        and data.startswith(cached.start, middle)
        and bool(_stamp(data, start, stop) if stamped else not _begins_stamped(data, start))
        and crc32(memoryview(data)[stop:end]) == cached.crc
        and digits == b"%d" % _body_crc32(data[middle:stop], cached)
    )


def _places(data: bytes, at: int, middle: int) -> Places | None:
    """Return their places in the frame at `at` whose body begins at `middle`, or None if it is laid out otherwise."""
    is_binary = data[at + 4] != 0
    numbers = _of_binary(data, at, middle) if is_binary else _of_json(data, at, middle)
    if numbers is None:
        return None
    start, end = (at + 29, middle) if is_binary else (at + 8, numbers[2])
    marker = _BINARY_SIGNATURE if is_binary else _JSON_SIGNATURE
    signed = data.find(marker, start, end) + len(marker)
    if signed < len(marker):
        return *numbers, start, start
    match = _signature(data, signed, end)
    return (*numbers, signed, match.end()) if match else None


def _of_binary(data: bytes, at: int, middle: int) -> tuple[int, int, int, int] | None:
    if data[at + 4] != _BINARY or data[at + 8 : at + 10] != _CODE or data[at + 21 : at + 25] != _NO_REMARK:
        return None
    length = data.find(_BINARY_CRC, at + 29, middle) + len(_BINARY_CRC)
    if length < len(_BINARY_CRC) or length >= middle or at + 29 + _INT32(data, at + 25)[0] != middle:
        return None
    end = length + 1 + data[length]
    return (length + 1, end, at + 13, at + 17) if end <= middle else None


def _of_json(data: bytes, at: int, middle: int) -> tuple[int, int, int, int] | None:
    crc = data.find(_JSON_CRC, at + 8, middle) + len(_JSON_CRC)
    crc_end = data.find(b'"', crc, crc + 11)
    opaque = data.find(OPAQUE, crc_end, middle) + len(OPAQUE)
    if data[at + 8] != _BRACE or crc < len(_JSON_CRC) or crc_end < 0 or opaque < len(OPAQUE):
        return None
    opaque_end = data.find(b",", opaque, opaque + 10)
    number = data[opaque:opaque_end]
    if opaque_end > middle or not number.isdigit() or (number[0] == _ZERO and len(number) > 1):
        return None
    return crc, crc_end, opaque, opaque_end


def _name(data: bytes, at: int, places: Places, middle: int) -> bytes:
    """Return the header without what is in these places, and without the lengths that depend on how long that is.

    Each was the first of its kind, and no cut makes another, so no other header with others cut out has the same
    name."""
    crc, crc_end, opaque, opaque_end, signed, signed_end = places
    if data[at + 4]:
        head, tail = data[at + 8 : opaque] + data[opaque_end : at + 25], b""
        start, end, crc = at + 29, middle, crc - 1
    else:
        head, tail = b"", data[opaque_end:middle]
        start, end = at + 8, opaque
    if signed < crc:
        return head + data[start:signed] + data[signed_end:crc] + data[crc_end:end] + tail
    return head + data[start:crc] + data[crc_end:signed] + data[signed_end:end] + tail


def _body_crc32(beginning: bytes, cached: CachedRegistration) -> int:
    """Return bodyCrc32 of a body with this beginning, as rocketmq_remoting.registration has it."""
    return as_body_crc32(crc32_combine(crc32(beginning), cached.crc, cached.length))


def _are_understood(places: Places, head: bytes, command: Command) -> bool:
    """Return whether others in these places of a frame mean another bodyCrc32, opaque and signature, and no more."""
    crc, crc_end, opaque, opaque_end, signed, signed_end = places
    changed = bytearray(head)
    for last in (crc_end - 1, opaque_end - 1, *range(signed, signed_end)[-1:]):
        changed[last] = _ZERO if changed[last] == _ONE else _ONE
    written = changed[opaque:opaque_end]
    number = int.from_bytes(written, "big", signed=True) if head[4] else int(written)
    ext = (command.ext or {}) | {CRC: changed[crc:crc_end].decode("latin-1")}
    if signed < signed_end:
        ext[SIGNATURE] = changed[signed:signed_end].decode("latin-1")
    try:
        return decode(bytes(changed[4:])) == replace(command, opaque=number, ext=ext, body=b"")
    except FrameError:
        return False
