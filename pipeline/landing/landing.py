"""Landing streams: each entry is written once, whatever is killed, and then the store is told so."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import cast

import msgspec
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pipeline import files
from pipeline.landing.folders import batches, folders
from pipeline.landing.kinds import Landed
from pipeline.landing.pieces import rows_of
from pipeline.landing.progress import Progress, StreamProgress, read_progress, write_progress
from pipeline.landing.rounds import ask_for_round
from pipeline.landing.writing import END, FILES, Batch, Summary, write
from pipeline.options import ALL
from pipeline.source.consumers import Consumer
from pipeline.source.follower import Follower
from pipeline.source.ids import BEFORE_ALL, Id, parsed
from pipeline.source.offsets import Position, offsets_of
from pipeline.source.options import options_of
from pipeline.source.streams import Piece

TASKS = 4  # a core, if there are so many pieces: these are of different sizes
WRITERS = 16  # files of so many days open at once, before Spark sorts a batch by day instead
AS_THEY_ARE = {"lineSep": END, "compression": "none", "maxRecordsPerFile": "1"}


class Landing:
    """Of one table, under `<root>/<table>`. There must be one at a time; readers there may be any number. Rows of a
    batch that another did not finish go as it is made.

    `source` are options of the format `redis_stream` (url, credentials, TLS, partitions, maxEntriesPerBatch …);
    `namespaces` whose streams are read, `*` among them for all there are; `consumer` is who holds back the trimming
    of these streams, None for nobody."""

    def __init__(
        self,
        spark: SparkSession,
        root: str,
        landed: Landed,
        source: Mapping[str, str],
        namespaces: tuple[str, ...] = ("default",),
        consumer: str | None = None,
    ) -> None:
        self._spark = _session(spark)
        self._landed = landed
        self.folder = f"{root.rstrip('/')}/{landed.table.name}"
        streams = ",".join(map(landed.stream, namespaces))
        named = {"pattern": landed.stream(ALL)} if ALL in namespaces else {"streams": streams}
        counted = {"counter": landed.counter} if landed.counter else {}
        self._options = options_of({**counted, **source, **named})
        self._columns = cast(StructType, StructType.fromDDL(landed.columns))
        self._follower = Follower(self._options, self._columns)
        self._store, self._streams = self._follower.store, self._follower.streams
        self._consumer = (
            Consumer(self._store, self._streams, consumer, self._options.consumer_key) if consumer else None
        )
        self._progress = read_progress(spark, self.folder)
        self._clear()

    @property
    def progress(self) -> Progress:
        """As it is in the folder."""
        return self._progress

    def land_available(self) -> Progress:
        """Land what is there now, in batches of `maxEntriesPerBatch`; what comes meanwhile is for the next time."""
        self.advance()
        self._follower.prepareForTriggerAvailableNow()
        while pieces := self._waiting():
            self._land(pieces)
        return self.advance()

    def advance(self) -> Progress:
        """Where a stream has nothing that has not landed, `as_of_ms` becomes now. The store hears that we are alive."""
        known = self._progress.streams
        for stream in self._streams.names():
            one = known.get(stream) or StreamProgress(self._landed.namespace(stream))
            known = {**known, stream: self._at_end(stream, one)}
            self._told(stream, one)
        if known != self._progress.streams:
            self._write(msgspec.structs.replace(self._progress, streams=known))
        return self._progress

    def close(self) -> None:
        """Let go of the store."""
        self._follower.stop()

    def _waiting(self) -> list[Piece]:
        """The next batch: what is behind the entries that landed last."""
        known = self._progress.streams.items()
        start = offsets_of({name: Position(one.at, True) for name, one in known if one.at > BEFORE_ALL})
        end = self._follower.latestOffset(start, self._follower.getDefaultReadLimit())
        return self._follower.pieces(start, end)

    def _land(self, pieces: Sequence[Piece]) -> None:
        """A batch."""
        before = self._progress
        streams = self._landed_streams(self._write_rows(pieces, before.batch + 1))
        self._write(Progress(before.batch + 1, {**before.streams, **streams}))
        self._fill_holes(before, streams)
        for stream, one in self._progress.streams.items():
            self._told(stream, one)

    def _write_rows(self, pieces: Sequence[Piece], number: int) -> list[Summary]:
        """Of the files that were written."""
        landed = self._landed
        batch = Batch(landed, number, self._options, self._columns, landed.table.schema)
        told = Observation()
        plan = self._spark.createDataFrame(rows_of(pieces))
        files_made = plan.mapInArrow(partial(write, batch), from_arrow_schema(FILES)).observe(
            told, F.collect_list(F.struct(*Summary._fields)).alias("files")
        )
        writer = files_made.select("file", "day", F.lit(batches(number, number)).alias("batches")).write
        writer.options(**AS_THEY_ARE).partitionBy("day", "batches").mode("append").text(self.folder)
        return [Summary(*row) for row in told.get["files"]]

    def _landed_streams(self, written: list[Summary]) -> dict[str, StreamProgress]:
        """Of the streams in a batch that was just written: what is known of them now."""
        streams = {}
        for stream, found in groupby(sorted(written, key=_place), key=lambda one: one.stream):
            before = self._progress.streams.get(stream) or StreamProgress(self._landed.namespace(stream))
            streams[stream] = self._at_end(stream, _after(before, [*found]))
        return streams

    def _at_end(self, stream: str, one: StreamProgress) -> StreamProgress:
        now_ms = self._streams.now_ms(stream)
        newest = self._streams.newest(stream)
        if newest is not None and newest.id != one.at:
            return one
        return msgspec.structs.replace(one, as_of_ms=max(one.as_of_ms, now_ms))

    def _told(self, stream: str, one: StreamProgress) -> None:
        if self._consumer is not None:
            self._consumer.reached(stream, one.at if one.at > BEFORE_ALL else None)

    def _fill_holes(self, before: Progress, streams: Mapping[str, StreamProgress]) -> None:
        """Where we lack entries, have the tables told anew."""
        for stream, one in streams.items():
            known = before.streams.get(stream)
            if self._consumer is not None and one.holes > (known.holes if known else 0):
                ask_for_round(self._store, self._streams, stream, f"job:{self._consumer.name}")

    def _write(self, progress: Progress) -> None:
        write_progress(self._spark, self.folder, progress)
        self._progress = progress

    def _clear(self) -> None:
        """Rows of a batch that was not finished."""
        for one in folders(self._spark, self.folder):
            if one.last > self._progress.batch:
                files.delete(self._spark, f"{self.folder}/{one}")


def _session(spark: SparkSession) -> SparkSession:
    """One with settings of its own."""
    own = spark.newSession()
    own.conf.set("spark.sql.maxConcurrentOutputFileWriters", WRITERS)
    own.conf.set("spark.sql.leafNodeDefaultParallelism", TASKS * spark.sparkContext.defaultParallelism)
    return own


def _place(file: Summary) -> tuple[str, Id]:
    return file.stream, parsed(file.first)


def _after(before: StreamProgress, files_made: list[Summary]) -> StreamProgress:
    """A stream's progress by a batch of which these are its files, in the order of their entries."""
    first, last = files_made[0], files_made[-1]
    again = parsed(first.first) <= before.at
    expected = (before.seq or 0) + 1 if first.first_inc == before.inc else 1
    hole = not again and (first.first_seq or 0) > expected
    return msgspec.structs.replace(
        before,
        id=last.last,
        inc=before.inc if last.last_seq is None else last.last_inc,
        seq=before.seq if last.last_seq is None else last.last_seq,
        as_of_ms=max(before.as_of_ms, parsed(last.last).ms),
        entries=before.entries + sum(one.entries for one in files_made),
        rejected=before.rejected + sum(one.rejected for one in files_made),
        holes=before.holes + hole,
        rereads=before.rereads + again,
    )
