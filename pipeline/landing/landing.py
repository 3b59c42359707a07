"""Landing streams: each entry is written once, whatever is killed, and then the store is told so."""

import threading
from collections.abc import Mapping
from functools import partial
from itertools import groupby
from typing import cast

import msgspec
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from pipeline import files
from pipeline.landing.folders import batches, folders
from pipeline.landing.kinds import Landed
from pipeline.landing.pieces import StreamPieces
from pipeline.landing.progress import Progress, StreamProgress, read_progress, write_progress
from pipeline.landing.rounds import ask_for_round
from pipeline.landing.writing import END, FILES, Batch, Summary, write
from pipeline.options import ALL
from pipeline.source.connection import Store
from pipeline.source.consumers import Consumer
from pipeline.source.ids import BEFORE_ALL, Id, parsed
from pipeline.source.options import options_of
from pipeline.source.streams import Streams

CHECKPOINT = "_checkpoint"
TASKS = 4  # a core; pieces are of different sizes
WRITERS = 16  # files of so many days open at once, before Spark sorts a batch by day instead
AS_THEY_ARE = {"lineSep": END, "compression": "none", "maxRecordsPerFile": "1"}


class Landing:
    """Of one table, under `<root>/<table>`. There must be one at a time; readers there may be any number.

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
        spark.dataSource.register(StreamPieces)
        self._spark = spark
        self._landed = landed
        self.folder = f"{root.rstrip('/')}/{landed.table.name}"
        streams = ",".join(map(landed.stream, namespaces))
        named = {"pattern": landed.stream(ALL)} if ALL in namespaces else {"streams": streams}
        counted = {"counter": landed.counter} if landed.counter else {}
        self._source = {**counted, **source, **named}
        self._options = options_of(self._source)
        self._store = Store(self._options)
        self._streams = Streams(self._options, self._store)
        self._consumer = (
            Consumer(self._store, self._streams, consumer, self._options.consumer_key) if consumer else None
        )
        self._lock = threading.Lock()  # of what follows, between the query's thread and who calls `advance`
        self._progress = read_progress(spark, self.folder)

    @property
    def progress(self) -> Progress:
        """As it is in the folder."""
        return self._progress

    def land_available(self) -> Progress:
        """Land what is there now, then end."""
        query = self.start(available_now=True)
        query.awaitTermination()
        return self.advance()

    def start(self, *, available_now: bool = False, every_s: float = 5.0) -> StreamingQuery:
        """The streaming query. While it runs, `advance` is to be called now and then."""
        self._progress = read_progress(self._spark, self.folder)
        self._clear()
        self.advance()
        after = {stream: one.id for stream, one in self._progress.streams.items() if one.at > BEFORE_ALL}
        tasks = TASKS * self._spark.sparkContext.defaultParallelism
        reader = self._spark.readStream.format(StreamPieces.name()).options(**self._source, tasks=tasks)
        plan = reader.option("after", msgspec.json.encode(after).decode()).load()
        writer = plan.writeStream.foreachBatch(self._land).option("checkpointLocation", self._checkpoint)
        writer = writer.queryName(f"landing {self._landed.table.name}")
        return (
            writer.trigger(availableNow=True)
            if available_now
            else writer.trigger(processingTime=f"{every_s} seconds")
        ).start()

    def advance(self) -> Progress:
        """Where a stream has nothing that has not landed, `as_of_ms` becomes now. The store hears that we are alive."""
        with self._lock:
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
        self._store.close()

    @property
    def _checkpoint(self) -> str:
        return f"{self.folder}/{CHECKPOINT}"

    def _land(self, plan: DataFrame, epoch: int) -> None:
        """A batch of the query. Again, after it was killed between here and Spark's own note that it is done: nothing,
        for the store may have trimmed meanwhile what the batch held."""
        query = self._query()
        with self._lock:
            before = self._progress
            if before.query != query or before.epoch < epoch:
                number = before.batch + 1
                streams = self._landed_streams(self._write_rows(plan, number))
                self._write(Progress(number, query, epoch, {**before.streams, **streams}))
                self._fill_holes(before, streams)
            for stream, one in self._progress.streams.items():
                self._told(stream, one)

    def _write_rows(self, plan: DataFrame, number: int) -> list[Summary]:
        """Of the files that were written."""
        plan.sparkSession.conf.set("spark.sql.maxConcurrentOutputFileWriters", WRITERS)
        landed = self._landed
        columns = cast(StructType, StructType.fromDDL(landed.columns))
        batch = Batch(landed, number, self._options, columns, landed.table.schema)
        told = Observation()
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

    def _query(self) -> str:
        text = files.read_text(self._spark, f"{self._checkpoint}/metadata")
        return str(msgspec.json.decode(text or "{}")["id"])

    def _clear(self) -> None:
        """Rows of a batch that was not finished."""
        for one in folders(self._spark, self.folder):
            if one.last > self._progress.batch:
                files.delete(self._spark, f"{self.folder}/{one}")


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
