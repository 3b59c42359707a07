"""Registrations as one zlib stream: a JSON data version, a line of text for each topic, JSON filter servers
and, from brokers of 5.0.0 on, JSON static topics. Each part follows its length or its count (int32)."""

import re
import zlib
from struct import Struct
from struct import error as StructError
from typing import Any, Final, TypeVar

from rocketmq_remoting.cooperative import Cooperative
from rocketmq_remoting.data_version import DataVersionMembers
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.inflate import inflate_cooperatively
from rocketmq_remoting.json_decoding import decode_json_cooperatively
from rocketmq_remoting.json_encoding import Dialect, encode_json
from rocketmq_remoting.register_broker_body import FilterServerList, RegisterBrokerBody, filter_servers_in
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import (
    MappingInfoMembers,
    TopicQueueMappingInfo,
    encode_mapping_info,
)

T = TypeVar("T")
INFLATED_MAX_LENGTH: Final = 64 * 1024 * 1024
"""Most bytes of an inflated body; a frame of 16 MiB could inflate to a thousand times its size."""

PART_MAX_LENGTH: Final = 64 * 1024
"""Most bytes of a data version, the list of filter servers or one static topic."""

TOPICS_MAX: Final = 200_000
"""Most topics, and most static topics, of one body: more than fit into an uncompressed frame."""

_PARTS_PER_STEP: Final = 100
_DECIMAL: Final = re.compile(r"[+-]?\d{1,20}")
_LENGTH: Final = Struct(">i")
_COMPRESSION_LEVEL: Final = 9
_FILTER_SERVER_LIST: Final[Any] = FilterServerList


def decode_compressed_body_cooperatively(
    body: bytes, now_ms: int, *, static_topics: bool
) -> Cooperative[RegisterBrokerBody]:
    """Return the body; with `static_topics` (5.0.0 and later) its static topics too, if there are any.

    Bytes after the last part are ignored. Raises BodyError."""
    parts = _Parts((yield from inflate_cooperatively(body, INFLATED_MAX_LENGTH)))
    version = yield from _json(parts, "dataVersion", DataVersionMembers)
    topics = {}
    for i in range(parts.count("topic count")):
        config = _topic(parts.part("topic"))
        topics[config.topic_name] = config
        if i % _PARTS_PER_STEP == 0:
            yield
    filter_servers: FilterServerList = yield from _json(parts, "filterServerList", _FILTER_SERVER_LIST)
    return RegisterBrokerBody(
        version.value(now_ms=now_ms),
        topics,
        topics.keys(),
        filter_servers_in(filter_servers),
        (yield from _mappings(parts)) if static_topics and not parts.exhausted else {},
    )


def _topic(line: bytearray) -> TopicConfig:
    """Return the topic of `TopicTest 8 8 6 SINGLE_TAG`, in 5.x followed by attributes, which are ignored."""
    try:
        name, reads, writes, perm, filter_type, *_ = line.decode().split(" ", 5)
        return TopicConfig(name, _int32(reads), _int32(writes), _int32(perm), topic_filter_type=filter_type)
    except ValueError as error:
        raise BodyError(f"topic line {bytes(line[:80])!r}") from error


def _int32(text: str) -> int:
    """Return the number of a text as Java's Integer.parseInt does."""
    number = int(text) if _DECIMAL.fullmatch(text) else None
    if number is None or not -(2**31) <= number < 2**31:
        raise ValueError(text)
    return number


def _mappings(parts: "_Parts") -> Cooperative[dict[str, TopicQueueMappingInfo]]:
    infos = {}
    for i in range(parts.count("static topic count")):
        info = (yield from _json(parts, "static topic", MappingInfoMembers)).value()
        infos[info.topic] = info
        if i % _PARTS_PER_STEP == 0:
            yield
    return infos


def _json(parts: "_Parts", what: str, type: type[T]) -> Cooperative[T]:
    part = parts.part(what)
    if len(part) > PART_MAX_LENGTH:
        raise BodyError(f"{what}: {len(part)} bytes")
    return decode_json_cooperatively(bytes(part), type, type)


class _Parts:
    """Reads int32 numbers and length-prefixed parts from `data`, front to back."""

    def __init__(self, data: bytearray) -> None:
        self._data = data
        self._at = 0

    @property
    def exhausted(self) -> bool:
        return self._at >= len(self._data)

    def number(self, what: str) -> int:
        try:
            (number,) = _LENGTH.unpack_from(self._data, self._at)
        except StructError as error:
            raise BodyError(f"{what}: the body ends at byte {self._at}") from error
        if number < 0:
            raise BodyError(f"{what}: {number}")
        self._at += 4
        return int(number)

    def count(self, what: str) -> int:
        number = self.number(what)
        if number > TOPICS_MAX:
            raise BodyError(f"{what}: {number}")
        return number

    def part(self, what: str) -> bytearray:
        length = self.number(what)
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise BodyError(f"{what}: {length} bytes where {len(self._data) - start} are left")
        return self._data[start : self._at]


def encode_compressed_body(body: RegisterBrokerBody, *, static_topics: bool) -> bytes:
    """Return the body as Java brokers write it, zlib level 9; with `static_topics` in the form of 5.x."""
    version = body.data_version
    tail = " {}" if static_topics else ""
    parts = [_sized(version.encode() if static_topics else version.encode_4x())]
    parts.append(_LENGTH.pack(len(body.topics)))
    parts += [
        _sized(
            f"{topic.topic_name} {topic.read_queue_nums} {topic.write_queue_nums} {topic.perm} "
            f"{topic.topic_filter_type}{tail}".encode()
        )
        for topic in body.topics.values()
    ]
    parts.append(_sized(encode_json(body.filter_servers)))
    if static_topics:
        parts.append(_LENGTH.pack(len(body.mapping_infos)))
        parts += [_sized(encode_mapping_info(info, Dialect.LEGACY)) for info in body.mapping_infos.values()]
    return zlib.compress(b"".join(parts), _COMPRESSION_LEVEL)


def _sized(part: bytes) -> bytes:
    return _LENGTH.pack(len(part)) + part
