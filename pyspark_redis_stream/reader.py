"""Reading streams once: what is there when the query is planned."""

from collections.abc import Iterable

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from pyspark_redis_stream.ids import BEFORE_ALL, LAST_N, Id
from pyspark_redis_stream.reading import Reading
from pyspark_redis_stream.streams import StreamPartition

SIGN = 1 << 63
"""The first ms that Spark has as a negative number."""


class Reader(Reading, DataSourceReader):
    """The batch reader. `_least` and `_most` are bounds that a filter sets."""

    _least: Id = BEFORE_ALL
    _most: Id | None = None

    def partitions(self) -> list[InputPartition]:
        """Up to the newest entry that there is now."""
        options = self._options
        partitions: list[StreamPartition] = []
        with self.store:
            for stream in self.streams.names():
                first = options.after[stream].after if stream in options.after else options.first
                first = max(first, self._least)
                newest = self._newest(stream)
                if newest is not None and newest >= first:
                    partitions += self.streams.partitions(stream, first, newest)
        return [*partitions]

    def _newest(self, stream: str) -> Id | None:
        """Return the last id to be read, None if there is none."""
        newest = self.streams.newest(stream, self._options.last)
        if newest is not None and self._most is not None and self._most < newest.id < Id(SIGN):
            newest = self.streams.newest(stream, self._most)
        return None if newest is None else newest.id


class FilteringReader(Reader):
    """Reads no further than bounds of `id_ms` in the query go (`where id_ms >= … and id_ms < …`).

    A class of its own: Spark refuses one that does this where `spark.sql.python.filterPushdown.enabled` is false."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the bounds; Spark filters again, which leaves out entries of another n."""
        for filter in filters:
            self._bound(filter)
        return filters

    def _bound(self, filter: Filter) -> None:
        attribute, value = getattr(filter, "attribute", ()), getattr(filter, "value", None)
        if attribute != ("id_ms",) or not isinstance(value, int) or value < 0:
            return
        match filter:
            case GreaterThan():
                self._read_from(value + 1)
            case GreaterThanOrEqual():
                self._read_from(value)
            case LessThan():
                self._read_to(value - 1)
            case LessThanOrEqual():
                self._read_to(value)
            case EqualTo():
                self._read_from(value)
                self._read_to(value)

    def _read_from(self, ms: int) -> None:
        self._least = max(self._least, Id(ms))

    def _read_to(self, ms: int) -> None:
        most = Id(max(ms, 0), LAST_N)
        self._most = most if self._most is None else min(self._most, most)
