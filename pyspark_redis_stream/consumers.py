"""Consumers of a stream acknowledge their position in a hash beside it, so that nothing is trimmed before.

A field of the hash is the consumer's name, its value `{"id","seq","at_ms","hold":1}`: everything up to the entry
`id` is safe with it.
"""

import re
import time

import msgspec

from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.ids import BEFORE_ALL, Id, parsed
from pyspark_redis_stream.streams import Entry, Streams

PART = re.compile(rb"(\d{1,9})/(\d{1,9})")
AGAIN_S = 60.0  # a consumer that reports nothing for a day no longer counts


class Position(msgspec.Struct, frozen=True):
    """A field's value; `at_ms` of the Redis clock, `hold`: trimming waits."""

    id: str = str(BEFORE_ALL)
    seq: int = 0
    at_ms: int = 0
    hold: int = 1


NOTHING = Position()


class Consumer:
    """One consumer of many streams. `key` is the hash's, with `{stream}` for the stream's key."""

    def __init__(self, store: Store, streams: Streams, name: str, key: str) -> None:
        self._store = store
        self._streams = streams
        self.name = name
        self._key = key
        self._reported: dict[str, tuple[Id | None, float]] = {}

    def reached(self, stream: str, at: Id | None) -> None:
        """All up to this entry is safe; None: nothing is, for we are about to read from the beginning.

        The position is the end of the last whole group, or the last one where the entry is gone. Cheap to repeat."""
        before, reported_s = self._reported.get(stream, (None, float("-inf")))
        if before == at and time.monotonic() - reported_s < AGAIN_S:
            return
        position = NOTHING if at is None else self._position(stream, at) or self._last_reported(stream)
        self._report(stream, position)
        self._reported[stream] = at, time.monotonic()

    def acknowledged(self, stream: str) -> Id:
        """Return up to where it is, `BEFORE_ALL` if it has said nothing."""
        return parsed(self._last_reported(stream).id)

    def _last_reported(self, stream: str) -> Position:
        known = self._store.call("HGET", self.key(stream), self.name)
        return msgspec.json.decode(known, type=Position) if known else NOTHING

    def _position(self, stream: str, at: Id) -> Position | None:
        entry = self._streams.entry(stream, at)
        part = PART.fullmatch(entry.fields.get(b"part", b"")) if entry else None
        if part and part[1] != part[2]:
            entry = self._before(stream, at, int(part[1]))
        return None if entry is None else Position(str(entry.id), entry.number(b"seq") or 0)

    def _before(self, stream: str, at: Id, entries: int) -> Entry | None:
        reply = self._store.call("XREVRANGE", stream, str(at), "-", "COUNT", entries + 1)
        return Entry(parsed(reply[-1][0]), reply[-1][1]) if len(reply) > entries else None

    def _report(self, stream: str, position: Position) -> None:
        renewed = msgspec.structs.replace(position, at_ms=self._streams.now_ms(stream), hold=1)
        self._store.call("HSET", self.key(stream), self.name, msgspec.json.encode(renewed))

    def key(self, stream: str) -> str:
        """Return that of the hash."""
        return self._key.replace("{stream}", stream)
