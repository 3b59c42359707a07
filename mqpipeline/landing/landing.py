"""Landing streams: each entry is written once, whatever is killed, and then acknowledged to the store."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import cast

import msgspec
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from mqpipeline import files
from mqpipeline.landing.checkpoint import request_checkpoint
from mqpipeline.landing.folders import batches, folders
from mqpipeline.landing.kinds import Landed
from mqpipeline.landing.progress import Progress, StreamProgress, read_progress, write_progress
from mqpipeline.landing.stream_partitions import rows_of
from mqpipeline.landing.writing import END, FILES, Batch, Summary, write
from mqpipeline.options import ALL
from mqpipeline.source.consumers import Consumer
from mqpipeline.source.follower import Follower
from mqpipeline.source.ids import BEFORE_ALL, Id, parsed
from mqpipeline.source.offsets import Position, offsets_of
from mqpipeline.source.options import options_of
from mqpipeline.source.streams import StreamPartition

TASKS = 4  # a core, if there are so many partitions: these are of different sizes
WRITERS = 16  # files of so many days open at once, before Spark sorts a batch by day instead
UNMOVED = "_temporary"  # where Hadoop has what tasks write, until their job ends
AS_THEY_ARE = {"lineSep": END, "compression": "none", "maxRecordsPerFile": "1"}


class Landing:
    """Of one table, under `<root>/<table>`. There must be one at a time; readers there may be any number. Rows of a
    batch that another did not finish go as it is made.

    `source` are options of the format `redis_stream` (url, credentials, TLS, partitions, maxEntriesPerBatch …);
    `namespaces` whose streams are read, `*` among them for all there are; `consumer` is the name that holds back the
    trimming of these streams, None for none."""

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
        while partitions := self._waiting():
            self._land(partitions)
        return self.advance()

    def advance(self) -> Progress:
        """Where a stream has nothing that has not landed, `as_of_ms` becomes now. Renews the consumer's position."""
        known = self._progress.streams
        for stream in self._streams.names():
            progress = known.get(stream) or StreamProgress(self._landed.namespace(stream))
            known = {**known, stream: self._at_end(stream, progress)}
            self._report_to_store(stream, progress)
        if known != self._progress.streams:
            self._write(msgspec.structs.replace(self._progress, streams=known))
        return self._progress

    def close(self) -> None:
        """Close the connections to the store."""
        self._follower.stop()

    def _waiting(self) -> list[StreamPartition]:
        """Return the ranges of the next batch: what follows the entries that landed last."""
        known = self._progress.streams.items()
        start = offsets_of(
            {name: Position(progress.at, True) for name, progress in known if progress.at > BEFORE_ALL}
        )
        end = self._follower.latestOffset(start, self._follower.getDefaultReadLimit())
        return self._follower.stream_partitions(start, end)

    def _land(self, partitions: Sequence[StreamPartition]) -> None:
        """Land one batch and acknowledge it."""
        before = self._progress
        streams = self._landed_streams(self._write_rows(partitions, before.batch + 1))
        self._write(Progress(before.batch + 1, {**before.streams, **streams}))
        self._fill_holes(before, streams)
        for stream, progress in self._progress.streams.items():
            self._report_to_store(stream, progress)

    def _write_rows(self, partitions: Sequence[StreamPartition], number: int) -> list[Summary]:
        """Write the rows and return the summaries of their files."""
        landed = self._landed
        batch = Batch(landed, number, self._options, self._columns, landed.table.schema)
        observation = Observation()
        plan = self._spark.createDataFrame(rows_of(partitions))
        files_made = plan.mapInArrow(partial(write, batch), from_arrow_schema(FILES)).observe(
            observation, F.collect_list(F.struct(*Summary._fields)).alias("files")
        )
        writer = files_made.select("file", "day", F.lit(batches(number, number)).alias("batches")).write
        writer.options(**AS_THEY_ARE).partitionBy("day", "batches").mode("append").text(self.folder)
        return [Summary(*row) for row in observation.get["files"]]

    def _landed_streams(self, written: list[Summary]) -> dict[str, StreamProgress]:
        """Return the progress of the streams of a batch that was just written."""
        streams = {}
        for stream, summaries in groupby(sorted(written, key=_place), key=lambda summary: summary.stream):
            before = self._progress.streams.get(stream) or StreamProgress(self._landed.namespace(stream))
            streams[stream] = self._at_end(stream, _after(before, [*summaries]))
        return streams

    def _at_end(self, stream: str, progress: StreamProgress) -> StreamProgress:
        now_ms = self._streams.now_ms(stream)
        newest = self._streams.newest(stream)
        if newest is not None and newest.id != progress.at:
            return progress
        return msgspec.structs.replace(progress, as_of_ms=max(progress.as_of_ms, now_ms))

    def _report_to_store(self, stream: str, progress: StreamProgress) -> None:
        if self._consumer is not None:
            self._consumer.reached(stream, progress.at if progress.at > BEFORE_ALL else None)

    def _fill_holes(self, before: Progress, streams: Mapping[str, StreamProgress]) -> None:
        """Request a checkpoint round of streams that new entries are missing of."""
        for stream, progress in streams.items():
            known = before.streams.get(stream)
            if self._consumer is not None and progress.holes > (known.holes if known else 0):
                request_checkpoint(self._store, self._streams, stream, f"job:{self._consumer.name}")

    def _write(self, progress: Progress) -> None:
        write_progress(self._spark, self.folder, progress)
        self._progress = progress

    def _clear(self) -> None:
        """Delete the rows of a batch that was not finished.

        What its tasks had ended and Hadoop had not moved to its place would be moved with the next batch's rows."""
        files.delete(self._spark, f"{self.folder}/{UNMOVED}")
        for part in folders(self._spark, self.folder):
            if part.last > self._progress.batch:
                files.delete(self._spark, f"{self.folder}/{part}")


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
        entries=before.entries + sum(summary.entries for summary in files_made),
        rejected=before.rejected + sum(summary.rejected for summary in files_made),
        holes=before.holes + hole,
        rereads=before.rereads + again,
    )
