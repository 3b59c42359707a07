"""The derived tables in files: whole snapshots, so that a reader never sees two runs mixed.

A run writes folders that nobody reads yet; `_snapshot.json`, replaced in one step at its end, tells which folders
are the tables now. What can no longer change is `closed` and only added to; the rest is `open`, and each run writes
it anew. Folders that a run puts out of use stay until the next one ends: readers may still be at them.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline import files
from pipeline.schemas import Table

SNAPSHOT = "_snapshot.json"
MERGED = 8  # so many closed folders of a size are made one
CLOSED, OPEN = "closed", "open"


class Folded(msgspec.Struct, frozen=True):
    """How far the tables tell of a namespace: up to `seq` of incarnation `inc`, and of what was landed, `batch`."""

    inc: int
    seq: int
    batch: int


class Parts(msgspec.Struct, frozen=True):
    """Where a table's rows are: folders of closed rows and the one of open rows, as the storage names them."""

    closed: tuple[str, ...] = ()
    open: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.closed, self.open) if self.open else self.closed


class Snapshot(msgspec.Struct, frozen=True):
    """The tables as of `as_of_ms`. Windows that ended by `final_ms` are closed; `unused` are folders to delete."""

    run: int = 0
    as_of_ms: int = 0
    final_ms: int = 0
    folded: dict[str, Folded] = {}
    tables: dict[str, Parts] = {}
    unused: tuple[str, ...] = ()


class Storage(Protocol):
    """How rows are kept. A part is named by text that only the storage understands."""

    def write(self, table: Table, run: int, part: str, rows: DataFrame, *, anew: bool) -> str:
        """Rows of one part; `anew`: they are all there is of it. Returns the part's name."""

    def read(self, table: Table, parts: Sequence[str]) -> DataFrame:
        """The rows of these parts with the partitions' columns."""

    def merge(self, table: Table, run: int, closed: tuple[str, ...]) -> tuple[str, ...]:
        """The same rows in fewer parts, or the parts as they are."""

    def delete(self, part: str) -> None:
        """A part that no snapshot names any more."""


class Warehouse:
    """All tables under one root. Of those who write there must be one at a time."""

    def __init__(self, spark: SparkSession, root: str, storage: Storage | None = None) -> None:
        self.spark = spark
        self.root = root.rstrip("/")
        self._storage = storage or ParquetFolders(spark, self.root)

    @property
    def snapshot(self) -> Snapshot:
        """The newest; an empty one before the first run."""
        text = files.read_text(self.spark, f"{self.root}/{SNAPSHOT}")
        return msgspec.json.decode(text, type=Snapshot) if text else Snapshot()

    def read(self, table: Table, snapshot: Snapshot | None = None) -> DataFrame:
        """The table in a snapshot, the newest by default; its columns and those of its partitions."""
        parts = (snapshot or self.snapshot).tables.get(table.name, Parts())
        return self._read(table, parts.all)

    def read_open(self, table: Table, snapshot: Snapshot) -> DataFrame:
        """Only what the next run writes anew."""
        part = snapshot.tables.get(table.name, Parts()).open
        return self._read(table, (part,) if part else ())

    def begin(self) -> "Run":
        """A run over the newest snapshot."""
        return Run(self, self._storage, self.snapshot)

    def _read(self, table: Table, parts: Sequence[str]) -> DataFrame:
        if parts:
            return self._storage.read(table, parts)
        return with_partitions(self.spark.createDataFrame([], table.schema), table)


class Run:
    """What becomes a snapshot when it commits, and leaves everything as it was when it does not."""

    def __init__(self, warehouse: Warehouse, storage: Storage, base: Snapshot) -> None:
        self.base = base
        self.number = base.run + 1
        self._warehouse = warehouse
        self._storage = storage
        self._tables = dict(base.tables)

    def write(self, table: Table, *, open: DataFrame | None = None, closed: DataFrame, anew: bool) -> None:
        """The table's open rows, and closed ones to add; `anew`: what was closed before is void."""
        before = self._tables.get(table.name, Parts())
        added = self._storage.write(table, self.number, CLOSED, closed, anew=anew)
        kept = () if anew else tuple(part for part in before.closed if part != added)
        parts = (*kept, added)
        if not anew:
            parts = self._storage.merge(table, self.number, parts)
        rewritten = None if open is None else self._storage.write(table, self.number, OPEN, open, anew=True)
        self._tables[table.name] = Parts(parts, rewritten)

    def read(self, table: Table) -> DataFrame:
        """The table as this run has written it so far."""
        return self._warehouse.read(table, Snapshot(tables=self._tables))

    def commit(self, *, as_of_ms: int, final_ms: int, folded: dict[str, Folded]) -> Snapshot:
        """From now on this is what readers find."""
        used = {part for parts in self._tables.values() for part in parts.all}
        unused = tuple(part for parts in self.base.tables.values() for part in parts.all if part not in used)
        made = Snapshot(self.number, as_of_ms, final_ms, folded, self._tables, unused)
        text = msgspec.json.format(msgspec.json.encode(made)).decode()
        files.write_text_atomically(self._warehouse.spark, f"{self._warehouse.root}/{SNAPSHOT}", text)
        for part in self.base.unused:
            self._storage.delete(part)
        return made


def with_partitions(rows: DataFrame, table: Table) -> DataFrame:
    """The table's columns and those of its partitions."""
    named = {partition.name: F.expr(partition.sql) for partition in table.partitions}
    return rows.select(*table.schema.names).withColumns(named)


class ParquetFolders:
    """A part is a folder `<table>/<part>-<size>/run=<run>` of Parquet files; sizes grow as parts are merged."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root

    def write(self, table: Table, run: int, part: str, rows: DataFrame, *, anew: bool) -> str:
        """Parts are never added to: `anew` or not, the rows are a part of their own."""
        return self._write(table, f"{table.name}/{part}-0/run={run}", rows)

    def read(self, table: Table, parts: Sequence[str]) -> DataFrame:
        frames = (
            self._spark.read.schema(with_partitions(self._empty(table), table).schema)
            .option("basePath", f"{self._root}/{part}")
            .parquet(f"{self._root}/{part}")
            for part in parts
        )
        first = next(frames)
        for frame in frames:
            first = first.unionByName(frame)
        return first

    def merge(self, table: Table, run: int, closed: tuple[str, ...]) -> tuple[str, ...]:
        """As many as MERGED of one size become one of the next, so a part is rewritten a few times in its life."""
        by_size: dict[int, list[str]] = {}
        for part in closed:
            by_size.setdefault(_size(part), []).append(part)
        for size, parts in sorted(by_size.items()):
            if len(parts) >= MERGED:
                name = f"{table.name}/{CLOSED}-{size + 1}/run={run}"
                merged = self._write(table, name, self.read(table, parts))
                return self.merge(table, run, (*(part for part in closed if part not in parts), merged))
        return closed

    def delete(self, part: str) -> None:
        files.delete(self._spark, f"{self._root}/{part}")

    def _write(self, table: Table, name: str, rows: DataFrame) -> str:
        placed = with_partitions(rows, table)
        columns = [partition.name for partition in table.partitions]
        if columns:
            placed = placed.repartition(*columns)
        if table.sort:
            placed = placed.sortWithinPartitions(*columns, *table.sort)
        placed.write.mode("overwrite").partitionBy(*columns).parquet(f"{self._root}/{name}")
        return name

    def _empty(self, table: Table) -> DataFrame:
        return self._spark.createDataFrame([], table.schema)


def _size(part: str) -> int:
    return int(part.split("/")[1].rpartition("-")[2])
