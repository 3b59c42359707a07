"""Following streams: each micro-batch goes from where the one before ended to where the streams end now."""

from functools import cached_property

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pyspark_redis_stream.consumers import Consumer
from pyspark_redis_stream.ids import BEFORE_ALL, Id
from pyspark_redis_stream.offsets import Offsets, Position, offsets_of, positions_of
from pyspark_redis_stream.reading import Reading
from pyspark_redis_stream.streams import StreamPartition


class Follower(Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream reader. Of the two places where Spark makes one, only the driver calls anything but `read`."""

    _targets: dict[str, Id] | None = None

    @cached_property
    def _consumer(self) -> Consumer | None:
        name, key = self._options.consumer, self._options.consumer_key
        return Consumer(self.store, self.streams, name, key) if name else None

    def initialOffset(self) -> Offsets:
        """Where a new query begins. A stream that is found later begins in the same way."""
        return offsets_of({stream: self._initial(stream) for stream in self.streams.names()})

    def getDefaultReadLimit(self) -> ReadLimit:
        """What option maxEntriesPerBatch says."""
        most = self._options.max_entries
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Entries that come from now on are of the next run."""
        newest = {stream: self.streams.newest(stream) for stream in self.streams.names()}
        self._targets = {stream: entry.id for stream, entry in newest.items() if entry is not None}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Where the next batch ends. A limit is shared evenly by the streams that have something new, those first
        that are furthest behind. ValueError for a limit that is neither rows nor none."""
        if not isinstance(limit, (ReadAllAvailable, ReadMaxRows)):
            raise ValueError(f"redis_stream can be limited by rows only, not by {limit}")
        self.commit(start)
        known = positions_of(start)
        waiting: list[tuple[Position, str, Id]] = []
        for stream in self.streams.names() if self._targets is None else self._targets:
            if self._consumer is not None and stream not in known:
                self._consumer.reached(stream, None)
            known.setdefault(stream, self._initial(stream))
            begin = self._begin(stream, known[stream])
            if begin.reads == known[stream].reads:
                known[stream] = begin
            newest = self.streams.newest(stream, self._end(stream))
            if newest is not None and newest.id > begin.id:
                waiting.append((begin, stream, newest.id))
        if isinstance(limit, ReadMaxRows):
            waiting = sorted(waiting)[: limit.max_rows]
        for begin, stream, end in waiting:
            if isinstance(limit, ReadMaxRows):
                end = self.streams.cut(stream, begin.id.after, end, limit.max_rows // len(waiting))
            known[stream] = Position(end, True, begin.reads)
        return offsets_of(known)

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """Return the partitions of a micro-batch, as Spark asks for them."""
        return [*self.stream_partitions(start, end)]

    def stream_partitions(self, start: Offsets, end: Offsets) -> list[StreamPartition]:
        """Everything after `start` up to `end`; from the beginning where reading starts over between them."""
        before = positions_of(start)
        partitions: list[StreamPartition] = []
        for stream, to in positions_of(end).items():
            since = before.get(stream) or self._initial(stream)
            after = since.id if since.reads == to.reads else BEFORE_ALL
            if to.id > after:
                partitions += self.streams.partitions(stream, after.after, to.id)
        return partitions

    def commit(self, end: Offsets) -> None:
        """Report `end` to the option's consumer, if there is one. Spark calls this as the next batch is planned; we
        do as soon as Spark asks for an end, which comes sooner, and after the last batch of `availableNow` too."""
        if self._consumer is not None:
            for stream, at in positions_of(end).items():
                self._consumer.reached(stream, at.id if at.seen else None)

    def stop(self) -> None:
        """Close the connections."""
        self.store.close()

    def _initial(self, stream: str) -> Position:
        read = self._options.after.get(stream)
        return Position(read, True) if read else Position(self._options.first.before, False)

    def _begin(self, stream: str, at: Position) -> Position:
        """`at`, or the stream's beginning if the entry we read last is gone and older ones are not: then a primary was
        lost with it, and others may have taken the places of what we read."""
        if not at.seen or self.streams.entry(stream, at.id) is not None:
            return at
        oldest = self.streams.oldest(stream)
        if oldest is None or oldest.id > at.id:
            return at
        if self._options.reread_lost:
            return Position(BEFORE_ALL, False, at.reads + 1)
        newest = self.streams.newest(stream, at.id)
        return at if newest is None else at._replace(id=newest.id)

    def _end(self, stream: str) -> Id | None:
        bounds = [self._options.last, (self._targets or {}).get(stream)]
        return min((bound for bound in bounds if bound is not None), default=None)
