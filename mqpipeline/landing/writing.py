"""A task's share of a batch: it reads partitions of streams and makes Parquet files of them, so that rows never pass
through Spark. What Spark writes are the files, each whole, in the one column of a row.

Spark writes a column of text as it is, with something behind each row (`lineSep`): of a Parquet file that can be its
last four bytes. So files arrive as all that Spark writes does: on any file system that it knows, with its credentials,
and those of attempts that failed never.
"""

import gc
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from mqpipeline.landing.kinds import Landed
from mqpipeline.landing.stream_partitions import stream_partitions_of
from mqpipeline.source.ids import Id
from mqpipeline.source.options import Options
from mqpipeline.source.reading import Reading

END = "PAR1"
"""The last bytes of every Parquet file."""
GROUP_ROWS, GROUP_BYTES = 1 << 17, 64 << 20  # of a row group, before it is encoded
FILE_BYTES = 16 << 20
DAY_MS = 86_400_000
UNSIGNED = (1 << 64) - 1


class Summary(NamedTuple):
    """Of a file: the ids of its first entry and its last, and what numbers these, where they say it."""

    stream: str
    entries: int
    rejected: int
    first: str
    last: str
    first_inc: int | None
    first_seq: int | None
    last_inc: int | None
    last_seq: int | None


FILES = pa.schema(
    [
        *(("day", pa.utf8()), ("file", pa.utf8())),
        *((name, pa.utf8() if of is str else pa.int64()) for name, of in Summary.__annotations__.items()),
    ]
)
"""A file less its END, its day, and a `Summary` of it."""


class Batch(NamedTuple):
    """What a task needs. `columns` are those of `landed` to read, `schema` its table's, both as Spark has them."""

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

    def id(self, at: int) -> str:
        """Of an entry; without the sign that Spark gives it."""
        return str(Id(*(self.raw[name][at].as_py() & UNSIGNED for name in ("id_ms", "id_n"))))

    def number(self, name: str, at: int) -> int | None:
        """A column of an entry, None if there is no such column."""
        return self.rows[name][at].as_py() if name in self.rows.schema.names else None


def write(batch: Batch, plan: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of partitions -> FILES. Holds one file at a time."""
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
                yield from _files(day, partition.stream, schema, of_day)


@cache
def _keep_modules() -> None:
    """Once in a process. Spark has it look for garbage after each task: 50 ms, for what is there since its start."""
    gc.freeze()


def _by_day(raw: pa.RecordBatch, rows: pa.RecordBatch) -> Iterator[Part]:
    days = raw["id_ms"].to_numpy() // DAY_MS
    bounds = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist(), len(raw)]
    for start, end in pairwise(bounds):
        yield Part(raw.slice(start, end - start), rows.slice(start, end - start))


def _files(day: str, stream: str, schema: pa.Schema, parts: Iterator[Part]) -> Iterator[pa.RecordBatch]:
    for first in parts:
        file = _File(schema, first)
        while file.size < FILE_BYTES and (part := next(parts, None)):
            file.add(part)
        content, summary = file.ended(stream)
        rest = [pa.array([value], FILES.field(name).type) for name, value in summary._asdict().items()]
        yield pa.RecordBatch.from_arrays([pa.array([day]), content, *rest], schema=FILES)


class _File:
    """Is made in memory."""

    def __init__(self, schema: pa.Schema, first: Part) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, schema, compression="zstd", store_schema=False)
        self._group: list[pa.RecordBatch] = []
        self._entries = self._rejected = 0
        self._first = first
        self.add(first)

    @property
    def size(self) -> int:
        """Bytes of what is encoded."""
        return int(self._sink.tell())

    def add(self, part: Part) -> None:
        """More rows."""
        self._last = part
        self._group.append(part.rows)
        self._entries += len(part.rows)
        if "rejected" in part.rows.schema.names:
            self._rejected += len(part.rows) - part.rows["rejected"].null_count
        if (
            sum(map(len, self._group)) >= GROUP_ROWS
            or sum(rows.nbytes for rows in self._group) >= GROUP_BYTES
        ):
            self._encode()

    def ended(self, stream: str) -> tuple[pa.Array, Summary]:
        """The file less its END, as text."""
        self._encode()
        self._writer.close()
        content = self._sink.getvalue()
        bounds = pa.array([0, len(content) - len(END)], pa.int32())
        first, last = self._first, self._last
        return pa.Array.from_buffers(pa.utf8(), 1, [None, bounds.buffers()[1], content]), Summary(
            stream,
            self._entries,
            self._rejected,
            first.id(0),
            last.id(-1),
            *(first.number(name, 0) for name in ("inc", "seq")),
            *(last.number(name, -1) for name in ("inc", "seq")),
        )

    def _encode(self) -> None:
        if self._group:
            self._writer.write_table(pa.Table.from_batches(self._group))
            self._group = []
