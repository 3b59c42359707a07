"""A table's files: Parquet, made in memory and written whole, by tasks of Spark or by the driver."""

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.schema import Schema
from deltalake.transaction import AddAction

from mqpipeline.lake.place import Place
from mqpipeline.lake.statistics import Statistics
from mqpipeline.schemas import Table

PARTITION_TYPES: Final = {"string": pa.utf8(), "int": pa.int32()}
"""As DDL names them, as Arrow has them."""
GROUP_ROWS, GROUP_BYTES = 1 << 17, 64 << 20  # of a row group, before it is encoded
FILE_BYTES: Final = 128 << 20
"""Bytes of a file that many rows or several files become, about."""
LINES = pa.schema([("json", pa.utf8())])
"""What tasks report, a struct as JSON each."""


def line(reported: msgspec.Struct) -> pa.RecordBatch:
    """Return a row of LINES."""
    return pa.RecordBatch.from_pylist([{"json": msgspec.json.encode(reported).decode()}], schema=LINES)


class Written(msgspec.Struct, frozen=True):
    """A file that was written and is in no log yet: its path under the table's place, how many rows it has, and their
    statistics."""

    path: str
    size: int
    rows: int
    partition: Mapping[str, str]
    statistics: str

    def action(self) -> AddAction:
        """Return what a transaction that adds it says."""
        return AddAction(self.path, self.size, self.partition, now_ms(), True, self.statistics)


def now_ms() -> int:
    """Return the time of this machine, as logs have it."""
    return int(time.time() * 1000)


def written_before(place: Place, path: str, table: Table) -> Written:
    """Return what there is to say of a file that lies there already. Raises pyarrow's ArrowException or OSError if it
    cannot be read."""
    statistics = statistics_of(place, path, table)
    named = dict(folder.split("=", 1) for folder in path.split("/")[:-1] if "=" in folder)
    partition = {one.name: named[one.name] for one in table.partitions}
    return Written(path, place.size(path), statistics.rows, partition, statistics.json())


def statistics_of(place: Place, path: str, table: Table) -> Statistics:
    """Return those of the rows of a file. Raises as `written_before` does."""
    statistics = Statistics(table.bounded)
    with place.open(path) as opened:
        for rows in pq.ParquetFile(opened).iter_batches(columns=list(table.bounded)):
            statistics.add(rows)
    return statistics


def schema_of(place: Place, paths: Iterable[str], table: Table) -> Schema:
    """Return the schema of a table whose files these are. Unlike that of its DDL it needs no Java."""
    schemas = []
    for path in paths:
        with place.open(path) as opened:
            schemas.append(pq.read_schema(opened).remove_metadata())
    partitions = pa.schema([(one.name, PARTITION_TYPES[one.type]) for one in table.partitions])
    return Schema.from_arrow(pa.unify_schemas([*schemas, partitions], promote_options="permissive"))


class NewFile:
    """A file in the making. `partition` are the columns that its folder names instead of its rows."""

    def __init__(self, schema: pa.Schema, indexed: Sequence[str], partition: Mapping[str, str]) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, schema, compression="zstd", store_schema=False)
        self._statistics = Statistics(indexed)
        self._partition = partition
        self._group: list[pa.RecordBatch] = []

    @property
    def size(self) -> int:
        """Bytes of what is encoded."""
        return int(self._sink.tell())

    @property
    def rows(self) -> int:
        """How many there are."""
        return self._statistics.rows

    def add(self, rows: pa.RecordBatch) -> None:
        """More rows, without the columns of `partition`."""
        self._statistics.add(rows)
        self._group.append(rows)
        many, large = sum(map(len, self._group)), sum(group.nbytes for group in self._group)
        if many >= GROUP_ROWS or large >= GROUP_BYTES:
            self._encode()

    def written(self, place: Place) -> Written:
        """Write it under a name of its own."""
        self._encode()
        self._writer.close()
        content = memoryview(self._sink.getvalue())
        folders = "".join(f"{name}={value}/" for name, value in self._partition.items())
        path = f"{folders}part-{secrets.token_hex(16)}.zstd.parquet"
        place.write(path, content)
        return Written(path, len(content), self.rows, self._partition, self._statistics.json())

    def _encode(self) -> None:
        if self._group:
            self._writer.write_table(pa.Table.from_batches(self._group))
            self._group = []
