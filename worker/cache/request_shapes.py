"""Shapes of lookups: what is left of a request's frame without its opaque and its topic.

Clients of one release send the same bytes around these two, so a frame whose shape is known asks what its topic says,
in the view that the shape was learnt with, whatever topics other clients asked for before. A shape holds all else that
a reply depends on: code, version, flag, every ext field. The replies are cached once for a view, not for a release.

A shape is learnt from a decoded request, and only if another topic and another opaque in their places decode to these
and to nothing else. It then holds for every plain topic, and replies are kept under no other: a JSON string ends with
its quote, and nothing within moves what comes after; in a binary header the lengths that count the topic are fixed by
the length of the frame.
"""

from struct import Struct
from typing import Final

import msgspec
from msgspec.structs import replace

from registry.caching.bounded import Bounded
from rocketmq_remoting.acl_signature import SIGNATURE
from rocketmq_remoting.errors import FrameError
from rocketmq_remoting.header_binary import decode_binary_command
from rocketmq_remoting.header_json import decode_json_command
from rocketmq_remoting.remoting_command import Command, SerializeType
from worker.cache.views import AskedView, Key

__all__ = ["OPAQUE", "VIEW_PROVEN", "Cuts", "RequestShapes", "cuts_of", "is_understood", "shape_of"]

SHAPES_BYTES: Final = 8 << 20
"""Some 12,000 of signed lookups, each of which has a shape of its own; of others a fleet of clients has tens."""
COST: Final = 250
"""Bytes that one takes beside its own, with the prefix that it stands for."""

OPAQUE: Final = b'"opaque":'
_TOPIC: Final = b'"topic":"'
_FIELD: Final = b"\0\x05topic"
_PLAIN: Final = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')
"""Bytes of a topic that means what is written; replies are kept under no other."""
_PLACES: Final = Struct(">BHH").pack
_BINARY, _JSON, _JSON_TOPIC_FIRST = 0xFC, 0xFD, 0xFE
_PREFIX: Final = 0xFF
"""First bytes of shapes with a topic and of prefixes: no frame or JSON header begins with these."""
_PROVEN: Final = 0
"""What follows in a prefix without a view where there is a proof; views have other numbers."""
VIEW_PROVEN: Final = 5
"""The first number of views with a proof."""
_END: Final = b"\xff"
"""Ends the zone and the signature in a prefix: in no text."""
_WORD: Final = Struct(">I").unpack_from
_pack: Final = Struct(">I").pack
_NO_REMARK: Final = bytes(4)
_ZERO: Final = ord("0")


Cuts = tuple[int, int, int, int]
"""From where to where the opaque is in some bytes, and the topic; zeros where none is cut."""


class RequestShapes(Bounded[bytes, bytes]):
    """The shapes of one worker: by shape, what replies to such requests are cached under, up to the topic; of signed
    lookups with the topic, which the signature covers."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(SHAPES_BYTES, _cost)

    def learn(
        self, frame: bytes, cuts: Cuts, command: Command, key: Key, *, proven: bool = False
    ) -> bytes | None:
        """Learn the shape of a request for `key`; return what its reply is cached under, None if it has no shape."""
        kind, view = command.serialize_type, key[1]
        is_all_header = len(frame) - 8 == _WORD(frame, 4)[0] & 0xFFFFFF
        if not is_all_header or bool(cuts[2]) != (view is not None):
            return None
        proof = command.get(SIGNATURE) if proven else None
        shape, prefix = shape_of(frame, 0, len(frame), cuts), _prefix(kind, view, proof)
        topic = frame[cuts[2] : cuts[3]]
        request = prefix + topic
        held = prefix if proof is None else request
        if self.get(shape) == held:
            return None if topic.translate(None, _PLAIN) else request
        if not is_understood(frame, cuts, command):
            return None
        self.put(shape, held)
        return request

    def request(self, shape: bytes, topic: bytes) -> bytes | None:
        """Return what the reply to a request of this shape, with that topic if one was cut out, is cached under."""
        held = self.entries.get(shape)
        if held is None:
            return None
        if len(held) < 3 or held[2] < VIEW_PROVEN:
            return held + topic
        return held if held.rpartition(_END)[2] == topic else None


def _cost(shape: bytes, held: bytes) -> int:
    return COST + len(shape) + len(held)


def _prefix(kind: SerializeType, view: AskedView | None, proof: str | None) -> bytes:
    """Return the bytes that stand for a view in headers of a kind, and a proof; with a topic they are no other's."""
    signature = b"" if proof is None else proof.encode("utf-8", "surrogatepass") + _END
    if view is None:
        return bytes((_PREFIX, kind)) if proof is None else bytes((_PREFIX, kind, _PROVEN)) + signature
    zone = b"" if view.zone is None else view.zone.encode("utf-8", "surrogatepass")
    number = (1 if proof is None else VIEW_PROVEN) + view.standard + 2 * view.omits_v5
    prefix = bytes((_PREFIX, kind, number))
    return prefix + zone + _END + signature


def cuts_of(data: bytes, at: int, end: int, word: int) -> Cuts | None:
    """Return the cuts of a frame with that header word, or None if its opaque cannot be cut out.

    A topic is cut out of a header without a body behind it, and without a remark if it is a binary one."""
    whole = end - at - 8 == word & 0xFEFFFFFF  # of type 0 or 1
    if word >> 24:
        start, stop = at + 13, at + 17
        if not whole or data[at + 21 : at + 25] != _NO_REMARK:
            return start, stop, 0, 0
        topic = data.find(_FIELD, at + 29, end - 4) + 11
        if topic < 11 or _WORD(data, at + 25)[0] != end - at - 29:
            return start, stop, 0, 0
        topic_end = topic + _WORD(data, topic - 4)[0]
        if topic_end > end:
            return start, stop, 0, 0
    else:
        start = data.find(OPAQUE, at + 8, end) + 9
        stop = data.find(b",", start, start + 10)
        digits = data[start:stop]
        if (
            start < 9
            or data[at + 8] >= _BINARY  # no JSON begins so, but names of shapes do
            or not digits.isdigit()
            or (digits[0] == _ZERO and stop - start > 1)
            or not start < stop < end
        ):
            return None
        topic = data.find(_TOPIC, at + 8, end) + 9 if whole else 0
        topic_end = data.find(b'"', topic, end)
        if topic < 9 or topic_end < 0 or (topic < stop and start < topic_end):
            return start, stop, 0, 0
    return start, stop, topic, topic_end


def shape_of(data: bytes, at: int, end: int, cuts: Cuts) -> bytes:
    """Return what is left of a frame from `at` to `end`; with a topic, where the cuts were comes first."""
    start, stop, topic, topic_end = cuts
    if data[at + 4]:
        if not topic:
            return data[at : at + 13] + data[at + 17 : end]
        fixed = _PLACES(_BINARY, topic - at, 0) + data[at + 8 : start] + data[stop : at + 21]
        return fixed + data[at + 29 : topic - 4] + data[topic_end:end]
    if not topic:
        return data[at + 8 : start] + data[stop:end]
    if start < topic:
        places = _PLACES(_JSON, start - at, topic - stop)
        return places + data[at + 8 : start] + data[stop:topic] + data[topic_end:end]
    places = _PLACES(_JSON_TOPIC_FIRST, topic - at, start - topic_end)
    return places + data[at + 8 : topic] + data[topic_end:start] + data[stop:end]


def is_understood(frame: bytes, cuts: Cuts, command: Command) -> bool:
    """Return whether opaque and topic are `command`'s, and others there decode to these and to nothing else."""
    start, stop, topic, topic_end = cuts
    binary = frame[4]
    if (
        binary != command.serialize_type
        or frame[8] >= _BINARY
        or frame[topic:topic_end].translate(None, _PLAIN)
    ):
        return False
    written = int.from_bytes(frame[start:stop], "big", signed=True) if binary else int(frame[start:stop])
    if command.opaque != written or (topic and command.get("topic") != frame[topic:topic_end].decode()):
        return False
    opaque = 1 if written != 1 else 2
    other = "other" if topic_end - topic != 5 else "longer"
    ext = {**(command.ext or {}), "topic": other} if topic else command.ext
    try:
        decoded = _changed(frame, cuts, opaque, other.encode())
    except (FrameError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return decoded == replace(command, opaque=opaque, ext=ext, body=b"")


def _changed(frame: bytes, cuts: Cuts, opaque: int, topic: bytes) -> Command:
    """Return the command with another opaque and topic, without its body; with a topic, JSON has to be strict."""
    start, stop, topic_start, topic_end = cuts
    header, binary = frame[: 8 + (_WORD(frame, 4)[0] & 0xFFFFFF)], frame[4]
    number = _pack(opaque) if binary else b"%d" % opaque
    places = [(start, stop, number)]
    if topic_start:
        places.append((topic_start, topic_end, topic))
        if binary:
            (ext,) = _WORD(frame, 25)
            places.append((25, 29, _pack(ext + len(topic) - (topic_end - topic_start))))
            places.append((topic_start - 4, topic_start, _pack(len(topic))))
    for start, stop, put in sorted(places, reverse=True):
        header = header[:start] + put + header[stop:]
    if binary:
        return decode_binary_command(header[8:], b"")
    if topic_start:
        msgspec.json.decode(header[8:])
    return decode_json_command(header[8:], b"")
