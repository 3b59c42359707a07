"""What there is in the streams: which they are, where they end, how to cut them into partitions."""

import time
from collections.abc import Iterator
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.ids import LAST_N, Id, parsed
from pyspark_redis_stream.options import Options
from pyspark_redis_stream.pages import pages
from pyspark_redis_stream.text import is_utf8

Fields = dict[bytes, bytes]
SCANNED = 1000  # keys a SCAN
DIGITS = 18


class Entry(NamedTuple):
    """An entry as redis-py returns it; of a field that it has twice, the last value."""

    id: Id
    fields: Fields

    def number(self, field: bytes) -> int | None:
        """A field that is a whole number, of no more than 18 digits."""
        text = self.fields.get(field, b"")
        return int(text) if text.isdigit() and len(text) <= DIGITS else None


class StreamPartition(InputPartition):
    """The entries of `stream` with ids in [first, last], read by one task."""

    def __init__(self, stream: str, first: Id, last: Id) -> None:
        super().__init__((stream, first, last))
        self.stream, self.first, self.last = stream, first, last


class Streams:
    """The streams that the options name, as they are now."""

    def __init__(self, options: Options, store: Store) -> None:
        self._options = options
        self._store = store
        self._found: list[str] = []
        self._looked_at = float("-inf")

    def names(self) -> list[str]:
        """Sorted. Keys that match the pattern are looked for again after `discover_s`."""
        if self._options.streams:
            return sorted(set(self._options.streams))
        if time.monotonic() - self._looked_at >= self._options.discover_s:
            self._found = self._store.attempt(self._scanned)
            self._looked_at = time.monotonic()
        return self._found

    def newest(self, stream: str, last: Id | None = None) -> Entry | None:
        """The last entry, or the last up to an id."""
        return self._one("XREVRANGE", stream, last or "+", "-")

    def oldest(self, stream: str, first: Id | None = None) -> Entry | None:
        """The first entry, or the first from an id on."""
        return self._one("XRANGE", stream, first or "-", "+")

    def entry(self, stream: str, at: Id) -> Entry | None:
        """The entry of this id."""
        return self._one("XRANGE", stream, at, at)

    def now_ms(self, stream: str) -> int:
        """The time of the server that holds the stream."""
        seconds, micros = self._store.attempt(lambda: self._store.server_of(stream).time())
        return int(seconds) * 1000 + int(micros) // 1000

    def cut(self, stream: str, first: Id, last: Id, most: int) -> Id:
        """The id of the `most`th entry from `first` on, or `last` if that comes before."""
        if self._options.counter:
            begin = self._count_from(stream, first)
            return self._counted(stream, first, last, begin + most - 1) if begin is not None else last
        left = most
        for page in pages(self._store, stream, first, last, self._options.page):
            if left <= len(page.ids):
                return parsed(page.ids[left - 1].as_py())
            left -= len(page.ids)
        return last

    def partitions(self, stream: str, first: Id, last: Id) -> list[StreamPartition]:
        """Return [first, last] cut into at most option `partitions` partitions: of as many entries each with a
        counter, else of as much time each."""
        bounds = sorted({*self._bounds(stream, first, last), last})
        starts = [first, *(bound.after for bound in bounds[:-1])]
        return [StreamPartition(stream, start, end) for start, end in zip(starts, bounds, strict=True)]

    def _bounds(self, stream: str, first: Id, last: Id) -> Iterator[Id]:
        parts = self._options.partitions
        begin = self.oldest(stream, first)
        if parts == 1 or begin is None or begin.id >= last:
            return
        low = self._count_from(stream, first)
        high = self._count_from(stream, last)
        for part in range(1, parts):
            if low is None or high is None or high < low:
                yield Id(begin.id.ms + (last.ms - begin.id.ms) * part // parts, LAST_N)
            elif high - low > self._options.page:
                yield self._counted(stream, begin.id, last, low + (high - low) * part // parts)

    def _count_from(self, stream: str, first: Id) -> int | None:
        return self._count(self.oldest(stream, first))

    def _count(self, entry: Entry | None) -> int | None:
        return entry.number((self._options.counter or "").encode()) if entry else None

    def _counted(self, stream: str, first: Id, last: Id, count: int) -> Id:
        """The entry whose counter is `count`, or the nearest before; `last` if that counter lies beyond.

        Halves the range of ids; a counter that does not grow makes the result inexact, but still within."""
        low, high = first, last
        if (self._count_from(stream, last) or 0) <= count:
            return last
        while (middle := _between(low, high)) != low:
            entry = self.oldest(stream, middle)
            number = self._count(entry)
            if entry is None or number is None or number > count:
                high = middle
            else:
                low = entry.id
                if number == count:
                    break
        return low

    def _one(self, command: str, stream: str, first: Id | str, last: Id | str) -> Entry | None:
        reply = self._store.call(command, stream, str(first), str(last), "COUNT", 1)
        return Entry(parsed(reply[0][0]), reply[0][1]) if reply else None

    def _scanned(self) -> list[str]:
        keys = self._store.client.scan_iter(match=self._options.pattern, count=SCANNED, _type="stream")
        return sorted({key.decode() for key in keys if is_utf8(key)})


def _between(low: Id, high: Id) -> Id:
    width = LAST_N + 1
    return Id(*divmod((low.ms * width + low.n + high.ms * width + high.n) // 2, width))
