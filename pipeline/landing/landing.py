"""Landing streams: each entry is written once, whatever is killed, and then the store is told so."""

import threading
from collections.abc import Mapping

import msgspec
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from pipeline import files
from pipeline.landing.folders import batches, folders
from pipeline.landing.kinds import Landed
from pipeline.landing.progress import Progress, StreamProgress, read_progress, write_progress
from pipeline.landing.rounds import ask_for_round
from pipeline.source import register
from pipeline.source.connection import Store
from pipeline.source.consumers import Consumer
from pipeline.source.ids import BEFORE_ALL, Id
from pipeline.source.options import options_of
from pipeline.source.streams import Streams

CHECKPOINT = "_checkpoint"
UNLIKE = ("seq", "id_ms", "op")  # hardly a value twice: a dictionary of them would only cost
WRITERS = 16  # files of so many days open at once, before Spark sorts a batch by day instead


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
        register(spark)
        self._spark = spark
        self._landed = landed
        self.folder = f"{root.rstrip('/')}/{landed.table.name}"
        streams = ",".join(map(landed.stream, namespaces))
        named = {"pattern": landed.stream("*")} if "*" in namespaces else {"streams": streams}
        counted = {"counter": landed.counter} if landed.counter else {}
        self._source = {**counted, **source, **named}
        options = options_of(self._source)
        self._store = Store(options)
        self._streams = Streams(options, self._store)
        self._consumer = (
            Consumer(self._store, self._streams, consumer, options.consumer_key) if consumer else None
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
        reader = self._spark.readStream.format("redis_stream").options(**self._source)
        raw = reader.option("after", msgspec.json.encode(after).decode()).schema(self._landed.columns).load()
        writer = raw.writeStream.foreachBatch(self._land).option("checkpointLocation", self._checkpoint)
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

    def _land(self, raw: DataFrame, epoch: int) -> None:
        """A batch of the query. Again, after it was killed between here and Spark's own note that it is done: nothing,
        for the store may have trimmed meanwhile what the batch held."""
        query = self._query()
        with self._lock:
            before = self._progress
            if before.query != query or before.epoch < epoch:
                number = before.batch + 1
                self._write_rows(raw, number)
                streams = self._landed_streams(raw.sparkSession, number)
                self._write(Progress(number, query, epoch, {**before.streams, **streams}))
                self._fill_holes(before, streams)
            for stream, one in self._progress.streams.items():
                self._told(stream, one)

    def _write_rows(self, raw: DataFrame, number: int) -> None:
        raw.sparkSession.conf.set("spark.sql.maxConcurrentOutputFileWriters", WRITERS)
        table = self._landed.table
        rows = self._landed.rows(raw).withColumns(
            {
                "namespace": self._landed.namespace_of(F.col("stream")),
                "batch": F.lit(number).cast("bigint"),
                "batches": F.lit(batches(number, number)),
                **{partition.name: F.expr(partition.sql) for partition in table.partitions},
            }
        )
        days = [partition.name for partition in table.partitions]
        columns = rows.select(*table.schema.names, *days, "batches")
        plain = {f"parquet.enable.dictionary#{name}": "false" for name in UNLIKE}
        columns.write.options(**plain).partitionBy(*days, "batches").mode("append").parquet(self.folder)

    def _landed_streams(self, spark: SparkSession, number: int) -> dict[str, StreamProgress]:
        """Of the streams in a batch that was just written: what is known of them now."""
        paths = files.matching(spark, f"{self.folder}/day=*/batches={batches(number, number)}")
        if not paths:
            return {}
        schema = self._landed.table.schema
        counted = "inc" in schema.names
        at, seq = F.struct("id_ms", "id_n"), F.struct("inc", "seq") if counted else F.lit(None)
        found = (
            spark.read.schema(schema)
            .parquet(*paths)
            .groupBy("namespace")
            .agg(
                F.count("*").alias("entries"),
                (F.count("rejected") if counted else F.lit(0)).alias("rejected"),
                F.min(at).alias("first"),
                F.max(at).alias("last"),
                F.min_by(seq, at).alias("first_seq"),
                F.max_by(seq, at).alias("last_seq"),
            )
        )
        streams = {}
        for row in found.collect():
            stream = self._landed.stream(row["namespace"])
            before = self._progress.streams.get(stream) or StreamProgress(row["namespace"])
            streams[stream] = self._at_end(stream, _after(before, row))
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


def _after(before: StreamProgress, row: Row) -> StreamProgress:
    """A stream's progress by a batch with these of its rows."""
    first, last = Id(*row["first"]), Id(*row["last"])
    first_seq, last_seq = row["first_seq"] or (None, None), row["last_seq"] or (None, None)
    again = first <= before.at
    expected = (before.seq or 0) + 1 if first_seq[0] == before.inc else 1
    hole = not again and (first_seq[1] or 0) > expected
    return msgspec.structs.replace(
        before,
        id=str(last),
        inc=before.inc if last_seq[1] is None else last_seq[0],
        seq=before.seq if last_seq[1] is None else last_seq[1],
        as_of_ms=max(before.as_of_ms, last.ms),
        entries=before.entries + row["entries"],
        rejected=before.rejected + row["rejected"],
        holes=before.holes + hole,
        rereads=before.rereads + again,
    )
