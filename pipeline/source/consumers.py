"""Consumers of a stream tell how far they have got, in a hash beside it, so that nothing is trimmed before.

A field of the hash is the consumer's name, its value `{"id","seq","at_ms","hold":1}`: everything up to the entry
`id` is safe with it.
"""

import json

from pipeline.source.connection import Store
from pipeline.source.ids import BEFORE_ALL, Id, parsed
from pipeline.source.streams import Entry, Streams


class Consumer:
    """One consumer of many streams. `key` is the hash's, with `{stream}` for the stream's key."""

    def __init__(self, store: Store, streams: Streams, name: str, key: str) -> None:
        self._store = store
        self._streams = streams
        self._name = name
        self._key = key

    def hold(self, stream: str) -> None:
        """Keep everything from now on, or say again that it is held from where we are: whoever is silent for a day no
        longer counts."""
        known = self._store.call("HGET", self._hash(stream), self._name)
        self._tell(stream, json.loads(known) if known else {"id": str(BEFORE_ALL), "seq": 0})

    def commit(self, stream: str, at: Id) -> None:
        """All up to this entry is safe. Told is the end of the last whole group; of an entry that is gone, nothing."""
        entry = self._streams.entry(stream, at)
        part, _, parts = entry.fields.get(b"part", b"").partition(b"/") if entry else (b"", b"", b"")
        if part.isdigit() and part != parts:
            entry = self._before(stream, at, int(part))
        if entry is not None:
            seq = entry.fields.get(b"seq", b"")
            self._tell(stream, {"id": str(entry.id), "seq": int(seq) if seq.isdigit() else 0})

    def _before(self, stream: str, at: Id, entries: int) -> Entry | None:
        found = self._store.call("XREVRANGE", stream, str(at), "-", "COUNT", entries + 1)
        return Entry(parsed(found[-1][0]), found[-1][1]) if len(found) > entries else None

    def _tell(self, stream: str, position: dict[str, object]) -> None:
        seconds, micros = self._store.call("TIME")
        told = {**position, "at_ms": int(seconds) * 1000 + int(micros) // 1000, "hold": 1}
        self._store.call("HSET", self._hash(stream), self._name, json.dumps(told, separators=(",", ":")))

    def _hash(self, stream: str) -> str:
        return self._key.replace("{stream}", stream)
