"""TopicQueueMappingInfo: the queues of a static topic that a broker serves (RocketMQ 5.x)."""

from typing import Final

import msgspec
from msgspec import Raw

from rocketmq_remoting.integers import Int32, Int64
from rocketmq_remoting.json_decoding import decode_json, without_nulls
from rocketmq_remoting.json_encoding import Dialect, encode_json, number_map

METADATA_SCOPE_GLOBAL: Final = "__global__"


class TopicQueueMappingInfo(msgspec.Struct, frozen=True):
    """`curr_id_map` maps a queue of the topic (0 .. total_queues - 1) to the queue on broker `bname`."""

    topic: str
    bname: str
    total_queues: int
    curr_id_map: dict[int, int]
    scope: str = METADATA_SCOPE_GLOBAL
    epoch: int = 0
    dirty: bool = False


class _WrittenMappingInfo(msgspec.Struct, gc=False, rename="camel"):
    bname: str
    curr_id_map: Raw
    dirty: bool
    epoch: int
    scope: str
    topic: str
    total_queues: int


class MappingInfoMembers(msgspec.Struct, rename="camel"):
    """A mapping as peers send it: any member may be missing or null."""

    bname: str | None = None
    curr_id_map: dict[Int32, Int32 | None] | None = None
    dirty: bool | None = None
    epoch: Int64 | None = None
    scope: str | None = None
    topic: str | None = None
    total_queues: Int32 | None = None

    def value(self) -> TopicQueueMappingInfo:
        return TopicQueueMappingInfo(
            self.topic or "",
            self.bname or "",
            self.total_queues or 0,
            without_nulls(self.curr_id_map),
            METADATA_SCOPE_GLOBAL if self.scope is None else self.scope,
            self.epoch or 0,
            bool(self.dirty),
        )


def encode_mapping_info(info: TopicQueueMappingInfo, dialect: Dialect = Dialect.STANDARD) -> bytes:
    """Return compact JSON, members alphabetical."""
    written = _WrittenMappingInfo(
        bname=info.bname,
        curr_id_map=number_map(info.curr_id_map, dialect),
        dirty=info.dirty,
        epoch=info.epoch,
        scope=info.scope,
        topic=info.topic,
        total_queues=info.total_queues,
    )
    return encode_json(written)


def decode_mapping_info(text: bytes) -> TopicQueueMappingInfo:
    """Return the mapping of a text in either dialect. Raises BodyError."""
    return decode_json(text, MappingInfoMembers).value()
