"""Consumers of a stream tell how far they have got, in a hash beside it, so that nothing is trimmed before.

A field of the hash is the consumer's name, its value `{"id","seq","at_ms","hold":1}`: everything up to the entry
`id` is safe with it.
"""

import json
import time

from pipeline.source.connection import Store
from pipeline.source.ids import BEFORE_ALL, Id, parsed
from pipeline.source.streams import Entry, Streams

AGAIN_S = 60.0  # who is silent for a day no longer counts


class Consumer:
    """One consumer of many streams. `key` is the hash's, with `{stream}` for the stream's key."""

    def __init__(self, store: Store, streams: Streams, name: str, key: str) -> None:
        self._store = store
        self._streams = streams
        self.name = name
        self._key = key
        self._told: dict[str, tuple[Id | None, float]] = {}

    def reached(self, stream: str, at: Id | None) -> None:
        """All up to this entry is safe, or (None) nothing that was not said before: nothing may be trimmed behind.

        Told is the end of the last whole group; where the entry is gone, what was told last. Is cheap to say again."""
        said, when = self._told.get(stream, (None, float("-inf")))
        if said == at and time.monotonic() - when < AGAIN_S:
            return
        self._tell(stream, (at and self._position(stream, at)) or self.position(stream))
        self._told[stream] = at, time.monotonic()

    def position(self, stream: str) -> dict[str, object]:
        """What was told last, by whichever process."""
        known = self._store.call("HGET", self._hash(stream), self.name)
        return json.loads(known) if known else {"id": str(BEFORE_ALL), "seq": 0}

    def _position(self, stream: str, at: Id) -> dict[str, object] | None:
        entry = self._streams.entry(stream, at)
        part, _, parts = entry.fields.get(b"part", b"").partition(b"/") if entry else (b"", b"", b"")
        if part.isdigit() and part != parts:
            entry = self._before(stream, at, int(part))
        if entry is None:
            return None
        seq = entry.fields.get(b"seq", b"")
        return {"id": str(entry.id), "seq": int(seq) if seq.isdigit() else 0}

    def _before(self, stream: str, at: Id, entries: int) -> Entry | None:
        found = self._store.call("XREVRANGE", stream, str(at), "-", "COUNT", entries + 1)
        return Entry(parsed(found[-1][0]), found[-1][1]) if len(found) > entries else None

    def _tell(self, stream: str, position: dict[str, object]) -> None:
        told = {**position, "at_ms": self._streams.now_ms(stream), "hold": 1}
        self._store.call("HSET", self._hash(stream), self.name, json.dumps(told, separators=(",", ":")))

    def _hash(self, stream: str) -> str:
        return self._key.replace("{stream}", stream)
