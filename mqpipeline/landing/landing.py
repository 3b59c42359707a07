"""Landing streams: each entry is written once, whatever is killed, and then acknowledged to the store."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple, cast

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from mqpipeline.lake.files import LINES
from mqpipeline.lake.log import LakeError, created, opened
from mqpipeline.lake.maintenance import care
from mqpipeline.lake.place import place
from mqpipeline.landing.acknowledged import is_other_incarnation
from mqpipeline.landing.checkpoint import request_checkpoint
from mqpipeline.landing.kinds import Landed
from mqpipeline.landing.progress import WRITER, Progress, StreamProgress, progress_of
from mqpipeline.landing.stream_partitions import rows_of
from mqpipeline.landing.writing import Batch, LandedFile, write
from mqpipeline.options import ALL
from pyspark_redis_stream.consumers import Consumer
from pyspark_redis_stream.follower import Follower
from pyspark_redis_stream.ids import BEFORE_ALL, Id, parsed
from pyspark_redis_stream.offsets import Position, offsets_of
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.streams import Entry, StreamPartition

TASKS: Final = 4
"""A core, if there are so many partitions: these are of different sizes."""
COMPACT_EVERY: Final = 100
"""Batches. So many small files a folder are what a reader has to open."""
VACUUM_EVERY: Final = 1000
"""Batches. It lists all files there are."""


class End(NamedTuple):
    """The end of a stream: the time of its server, and the entry that was its newest after that."""

    now_ms: int
    newest: Entry | None


class Landing:
    """The landing of one table, under `<root>/<table>`. Of two at a time one is refused (OtherWriter); readers there
    may be any number.

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
        self._place = place(root).under(landed.table.name)
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
        self._compared: set[str] = set()
        self._log = opened(self._place, landed.table)
        self._writable = False
        self._progress = progress_of(self._log, landed)

    @property
    def progress(self) -> Progress:
        """As of the last look."""
        return self._progress

    def namespaces(self) -> list[str]:
        """Return those whose streams there are now."""
        return [*map(self._landed.namespace, self._streams.names())]

    def land_available(self) -> Progress:
        """Land what is there now, in batches of `maxEntriesPerBatch`; what comes meanwhile is for the next time."""
        self.advance()
        self._follower.prepareForTriggerAvailableNow()
        while partitions := self._waiting():
            self._land(partitions)
        return self.advance()

    def advance(self) -> Progress:
        """Where a stream has nothing that has not landed, `as_of_ms` becomes now. Renews the consumer's position."""
        known, present = dict(self._progress.streams), set()
        for stream in self._streams.names():
            progress = known.get(stream) or StreamProgress(self._landed.namespace(stream))
            self._refuse_lost_entries(stream, progress)
            end = self._end(stream)
            if end.newest is None and progress.at > BEFORE_ALL:
                continue  # it is gone: one that is only trimmed has its newest entry
            known[stream] = _at_end(progress, end)
            present.add(stream)
            self._report_to_store(stream, progress)
        self._progress = Progress(self._progress.batch, known, frozenset(present))
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
        if not self._writable:  # files without a log are refused
            self._log, self._writable = created(self._place, self._landed.table), True
        files = self._write_files(partitions, before.batch + 1)
        streams = self._landed_streams(files)
        self._commit(Progress(before.batch + 1, {**before.streams, **streams}, before.present), files)
        self._fill_holes(before, streams)
        for stream, progress in self._progress.streams.items():
            self._report_to_store(stream, progress)

    def _write_files(self, partitions: Sequence[StreamPartition], number: int) -> list[LandedFile]:
        """Write files of a batch, which no reader sees yet."""
        landed = self._landed
        batch = Batch(self._place, landed, number, self._options, self._columns, landed.table.schema)
        plan = self._spark.createDataFrame(rows_of(partitions))
        files = plan.mapInArrow(partial(write, batch), from_arrow_schema(LINES)).collect()
        return [msgspec.json.decode(row["json"], type=LandedFile) for row in files]

    def _commit(self, progress: Progress, files: Sequence[LandedFile]) -> None:
        """From now on readers find them."""
        assert self._log is not None
        log = self._log
        log.commit(WRITER, progress.batch, [landed.file for landed in files], progress.said())
        self._progress = progress
        care(log, progress.batch, compact_every=COMPACT_EVERY, vacuum_every=VACUUM_EVERY)

    def _landed_streams(self, files: list[LandedFile]) -> dict[str, StreamProgress]:
        """Return the progress of the streams of a batch that was just written."""
        streams = {}
        for stream, of_stream in groupby(sorted(files, key=_begin), key=lambda file: file.stream):
            before = self._progress.streams.get(stream) or StreamProgress(self._landed.namespace(stream))
            end = self._end(stream)
            streams[stream] = _at_end(_after(before, [*of_stream], end.now_ms), end)
        return streams

    def _refuse_lost_entries(self, stream: str, progress: StreamProgress) -> None:
        """Raise LakeError if more has been acknowledged than this table has, and was trimmed: once, before this process
        acknowledges anything."""
        if self._consumer is None or stream in self._compared:
            return
        acknowledged = self._consumer.acknowledged(stream)
        if self._is_other_store(stream, progress):
            self._compared.add(
                stream
            )  # what was acknowledged is of the store that is back, and was read before
            return
        next_one = self._streams.oldest(stream, progress.at)
        if not BEFORE_ALL < progress.at < acknowledged or (
            next_one and (next_one.id == progress.at or next_one.number(b"seq") == (progress.seq or 0) + 1)
        ):
            self._compared.add(stream)
            return
        name, key = self._consumer.name, self._consumer.key(stream)
        raise LakeError(
            f"{stream}: {name} has landed up to {acknowledged}, {self._place.name} only up to {progress.at}, and what "
            "is between was trimmed. Run `mqpipeline repair` with --url; if another warehouse lands under this name, "
            f"give one of them another (MQNS_PIPELINE_CONSUMER). To go on without these entries: HDEL {key} {name}"
        )

    def _is_other_store(self, stream: str, progress: StreamProgress) -> bool:
        newest = self._streams.newest(stream)
        return newest is not None and is_other_incarnation(newest, progress)

    def _end(self, stream: str) -> End:
        now_ms = self._streams.now_ms(stream)  # before the entry: what comes in between is after it
        return End(now_ms, self._streams.newest(stream))

    def _report_to_store(self, stream: str, progress: StreamProgress) -> None:
        if self._consumer is not None:
            self._consumer.reached(stream, progress.at if progress.at > BEFORE_ALL else None)

    def _fill_holes(self, before: Progress, streams: Mapping[str, StreamProgress]) -> None:
        """Request a checkpoint round of streams that new entries are missing of, or that another store has begun: it
        may be one that is back."""
        for stream, progress in streams.items():
            known = before.streams.get(stream) or StreamProgress(progress.namespace)
            other = progress.rereads > known.rereads and progress.inc != known.inc
            if self._consumer is not None and (other or progress.holes > known.holes):
                request_checkpoint(self._store, self._streams, stream, f"job:{self._consumer.name}")


def _session(spark: SparkSession) -> SparkSession:
    """One with settings of its own."""
    own = spark.newSession()
    own.conf.set("spark.sql.leafNodeDefaultParallelism", TASKS * spark.sparkContext.defaultParallelism)
    return own


def _at_end(progress: StreamProgress, end: End) -> StreamProgress:
    if end.newest is not None and end.newest.id != progress.at:
        return progress
    return msgspec.structs.replace(progress, as_of_ms=max(progress.as_of_ms, end.now_ms))


def _begin(file: LandedFile) -> tuple[str, Id]:
    return file.stream, parsed(file.first)


def _after(before: StreamProgress, files: list[LandedFile], now_ms: int) -> StreamProgress:
    """A stream's progress by a batch of which these are its files, in the order of their entries. Their ids may be
    ahead of the store's clock, but nothing is known of a time that has not come."""
    first, last = files[0], files[-1]
    again = parsed(first.first) <= before.at
    expected = (before.seq or 0) + 1 if first.first_inc == before.inc else 1
    hole = not again and (first.first_seq or 0) > expected
    return msgspec.structs.replace(
        before,
        id=last.last,
        inc=before.inc if last.last_seq is None else last.last_inc,
        seq=before.seq if last.last_seq is None else last.last_seq,
        as_of_ms=max(before.as_of_ms, min(parsed(last.last).ms, now_ms)),
        entries=before.entries + sum(file.entries for file in files),
        rejected=before.rejected + sum(file.rejected for file in files),
        holes=before.holes + hole,
        rereads=before.rereads + again,
    )
