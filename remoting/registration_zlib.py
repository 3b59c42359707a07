"""Registrations as one zlib stream: a JSON data version, a line of text for each topic, JSON filter servers
and, from brokers of 5.0.0 on, JSON static topics. Each part stands behind its length or its count (int32)."""

import zlib
from struct import Struct
from struct import error as StructError
from typing import Any, Final

from remoting.data_version import DataVersionMembers
from remoting.errors import BodyError
from remoting.inflate import inflate
from remoting.json_in import decode_json
from remoting.json_out import Dialect, encode_json
from remoting.register_broker_body import RegisterBrokerBody
from remoting.topic_config import TopicConfig
from remoting.topic_queue_mapping import MappingInfoMembers, TopicQueueMappingInfo, encode_mapping_info

INFLATED_MAX_LENGTH: Final = 64 * 1024 * 1024
"""Bytes a compressed body may have when inflated; a frame of 16 MiB could hold a thousand times its own."""

_LENGTH: Final = Struct(">i")
_COMPRESSION_LEVEL: Final = 9
_FILTER_SERVERS: Final[Any] = tuple[str, ...] | None


def decode_compressed_body(body: bytes, now_ms: int, *, static_topics: bool) -> RegisterBrokerBody:
    """Read the layout; `static_topics` where the broker's version has them, though they may be missing even
    then. Bytes behind the last part are ignored. Raises BodyError."""
    parts = _Parts(inflate(body, INFLATED_MAX_LENGTH))
    version = decode_json(parts.part("dataVersion"), DataVersionMembers)
    topics = {}
    for _ in range(parts.number("topic count")):
        config = _topic(parts.part("topic"))
        topics[config.topic_name] = config
    filter_servers: tuple[str, ...] | None = decode_json(parts.part("filterServerList"), _FILTER_SERVERS)
    return RegisterBrokerBody(
        version.value(now_ms=now_ms),
        topics,
        frozenset(topics),
        filter_servers,
        _mappings(parts) if static_topics and not parts.exhausted else {},
    )


def _topic(line: bytes) -> TopicConfig:
    """`TopicTest 8 8 6 SINGLE_TAG`, from 5.x followed by attributes that mean nothing here."""
    try:
        name, reads, writes, perm, filter_type, *_ = line.decode().split(" ", 5)
        return TopicConfig(name, _int32(reads), _int32(writes), _int32(perm), topic_filter_type=filter_type)
    except ValueError as error:
        raise BodyError(f"topic line {line[:80]!r}") from error


def _int32(text: str) -> int:
    number = int(text)
    if not -(2**31) <= number < 2**31:
        raise ValueError(text)
    return number


def _mappings(parts: "_Parts") -> dict[str, TopicQueueMappingInfo]:
    infos = [
        decode_json(parts.part("static topic"), MappingInfoMembers).value()
        for _ in range(parts.number("static topic count"))
    ]
    return {info.topic: info for info in infos}


class _Parts:
    """Takes int32 numbers, and parts behind their length, off the front of `data`."""

    def __init__(self, data: bytes) -> None:
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

    def part(self, what: str) -> bytes:
        length = self.number(what)
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise BodyError(f"{what}: {length} bytes where {len(self._data) - start} are left")
        return self._data[start : self._at]


def encode_compressed_body(body: RegisterBrokerBody, *, static_topics: bool) -> bytes:
    """The layout as Java brokers write it, level 9; with `static_topics` in the form of 5.x."""
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
