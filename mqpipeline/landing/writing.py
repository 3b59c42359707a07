"""A task's share of a batch: it reads partitions of streams and writes files of them, so that rows never pass through
Spark. Back come what the log is to say of the files, and where in the streams they begin and end."""

import gc
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, groupby, pairwise
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from mqpipeline.lake.files import NewFile, Written, line
from mqpipeline.lake.place import Place
from mqpipeline.landing.kinds import Landed
from mqpipeline.landing.stream_partitions import stream_partitions_of
from pyspark_redis_stream.ids import Id
from pyspark_redis_stream.options import Options
from pyspark_redis_stream.reading import Reading

FILE_BYTES = 16 << 20
DAY_MS = 86_400_000
UNSIGNED = (1 << 64) - 1


class LandedFile(msgspec.Struct, frozen=True):
    """A file that was written: the ids of its first entry and its last, and what numbers these, where they say it."""

    file: Written
    stream: str
    entries: int
    rejected: int
    first: str
    last: str
    first_inc: int | None
    first_seq: int | None
    last_inc: int | None
    last_seq: int | None


class Batch(NamedTuple):
    """What a task needs: `place` is the table's; `columns` are those of `landed` to read, `schema` its table's, both as
    Spark has them."""

    place: Place
    landed: Landed
    number: int
    options: Options
    columns: StructType
    schema: StructType


class Part(NamedTuple):
    """Entries of one day, one after another: as they were read, and as rows of the table."""

    raw: pa.RecordBatch
    rows: pa.RecordBatch

    @property
    def day(self) -> str:
        """Such as `2026-01-31`."""
        return str(np.datetime64(self.raw["id_ms"][0].as_py() // DAY_MS, "D"))

    @property
    def rejected(self) -> int:
        """How many entries."""
        rows = self.rows
        return len(rows) - rows["rejected"].null_count if "rejected" in rows.schema.names else 0

    def id(self, at: int) -> str:
        """Return the id of an entry, without the sign that Spark gives it."""
        return str(Id(*(self.raw[name][at].as_py() & UNSIGNED for name in ("id_ms", "id_n"))))

    def number(self, name: str, at: int) -> int | None:
        """A column of an entry, None if there is no such column."""
        return self.rows[name][at].as_py() if name in self.rows.schema.names else None


def write(batch: Batch, plan: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of partitions -> LINES, a `LandedFile` each. One file at a time is in memory."""
    _keep_modules()
    reading = Reading(batch.options, batch.columns)
    schema = to_arrow_schema(batch.schema, timezone="UTC")
    for rows in plan:
        for partition in stream_partitions_of(rows):
            namespace = batch.landed.namespace(partition.stream)
            row_batches = (
                (raw, batch.landed.rows(raw, namespace, batch.number, schema))
                for raw in reading.read(partition)
            )
            parts = (part for raw, rows in row_batches for part in _by_day(raw, rows))
            for day, of_day in groupby(parts, key=lambda part: part.day):
                for file in _files(batch, day, partition.stream, schema, of_day):
                    yield line(file)


@cache
def _keep_modules() -> None:
    """Once in a process. Spark has it look for garbage after each task: 50 ms, for what is there since its start."""
    gc.freeze()


def _by_day(raw: pa.RecordBatch, rows: pa.RecordBatch) -> Iterator[Part]:
    days = raw["id_ms"].to_numpy() // DAY_MS
    bounds = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist(), len(raw)]
    for start, end in pairwise(bounds):
        yield Part(raw.slice(start, end - start), rows.slice(start, end - start))


def _files(
    batch: Batch, day: str, stream: str, schema: pa.Schema, parts: Iterator[Part]
) -> Iterator[LandedFile]:
    for first in parts:
        file = NewFile(schema, batch.landed.table.bounded, {"day": day})
        last, rejected = first, 0
        for part in chain([first], parts):
            file.add(part.rows)
            last, rejected = part, rejected + part.rejected
            if file.size >= FILE_BYTES:
                break
        yield LandedFile(
            file.written(batch.place),
            stream,
            file.rows,
            rejected,
            first.id(0),
            last.id(-1),
            *(first.number(name, 0) for name in ("inc", "seq")),
            *(last.number(name, -1) for name in ("inc", "seq")),
        )
