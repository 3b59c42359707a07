"""The derived tables in files: whole snapshots, so that a reader never sees two runs mixed.

A run writes parts that no reader sees yet; `_snapshot.json`, replaced atomically at its end, lists the parts that are
the tables now. What can no longer change is closed and only added to; the rest is open, and each run replaces it.
Parts that a run puts out of use stay until the next one ends: readers may still be at them.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Protocol

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqpipeline import files
from mqpipeline.options import PREFIX, OptionError
from mqpipeline.schemas import Table

SNAPSHOT = "_snapshot.json"
MERGED = 8  # so many closed folders of a size are made one
PART, CLOSED, OPEN = "part", "closed", "open"


class Folded(msgspec.Struct, frozen=True):
    """How far the tables cover a namespace: up to `seq` of incarnation `inc`; which of the landing's batches they
    know, up to `batch`; and whether that is `recorded` (mqpipeline/tables/increments.py)."""

    inc: int
    seq: int
    batch: int
    recorded: bool = msgspec.field(name="settled")  # the name in the snapshot's JSON


class Parts(msgspec.Struct, frozen=True):
    """Where a table's rows are: parts of closed rows and the one of open rows, as the storage names them."""

    closed: tuple[str, ...] = ()
    open: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.closed, self.open) if self.open else self.closed


class Snapshot(msgspec.Struct, frozen=True):
    """The tables as of `as_of_ms`, kept as `format`. Windows that ended by `final_ms` are closed; `unused` are parts to
    delete."""

    run: int = 0
    as_of_ms: int = 0
    final_ms: int = 0
    folded: dict[str, Folded] = {}
    tables: dict[str, Parts] = {}
    unused: tuple[str, ...] = ()
    format: str = "parquet"


class Storage(Protocol):
    """How rows are kept. A part is named by text that only the storage understands."""

    @property
    def format(self) -> str:
        """Its name among the options."""

    def write(
        self, table: Table, run: int, rows: DataFrame, *, placed: bool, full: bool, more: bool
    ) -> tuple[str, str]:
        """-> the part of the closed rows and that of the open ones (column `part`), with those that the run wrote
        before if there are `more` of them now; `full`: there are no others; `placed` as in `Run.write`."""

    def read(self, table: Table, parts: Sequence[str]) -> DataFrame:
        """The rows of these parts, of which there is one at least, with the partitions' columns."""

    def merge(self, table: Table, run: int, closed: tuple[str, ...]) -> tuple[str, ...]:
        """The same rows in fewer parts, or the parts as they are."""

    def publish(self, run: int, tables: Mapping[str, Parts]) -> Mapping[str, Parts]:
        """The tables by name as they are after the run -> the parts that its snapshot is to name."""

    def delete(self, part: str) -> None:
        """A part that no snapshot names any more."""


class Warehouse:
    """All tables under one root. There must be one writer at a time."""

    def __init__(self, spark: SparkSession, root: str, storage: Storage | None = None) -> None:
        self.spark = spark
        self.root = root.rstrip("/")
        self._storage = storage or ParquetFolders(spark, self.root)

    @property
    def snapshot(self) -> Snapshot:
        """The newest; an empty one before the first run. Raises OptionError where tables are kept in another format."""
        text = files.read_text(self.spark, f"{self.root}/{SNAPSHOT}")
        if not text:
            return Snapshot(format=self._storage.format)
        snapshot = msgspec.json.decode(text, type=Snapshot)
        if snapshot.format != self._storage.format:
            raise OptionError(
                f"{PREFIX}FORMAT={self._storage.format}: the tables in {self.root} are kept as {snapshot.format}; "
                f"set it to that, or delete all there but events/ and heartbeats/"
            )
        return snapshot

    def read(self, table: Table, snapshot: Snapshot | None = None) -> DataFrame:
        """The table in a snapshot, the newest by default; its columns and those of its partitions."""
        parts = (snapshot or self.snapshot).tables.get(table.name, Parts())
        return self._read(table, parts.all)

    def read_open(self, table: Table, snapshot: Snapshot) -> DataFrame:
        """Only what the next run replaces; the table's columns."""
        part = snapshot.tables.get(table.name, Parts()).open
        return self._read(table, (part,) if part else ()).selectExpr(*table.schema.names)

    def begin(self) -> "Run":
        """A run over the newest snapshot."""
        return Run(self, self._storage, self.snapshot)

    def _read(self, table: Table, parts: Sequence[str]) -> DataFrame:
        if parts:
            return self._storage.read(table, parts)
        return self.spark.createDataFrame([], table.stored_schema)


class Run:
    """What becomes a snapshot when it commits, and leaves everything as it was when it does not."""

    def __init__(self, warehouse: Warehouse, storage: Storage, base: Snapshot) -> None:
        self.base = base
        self.number = base.run + 1
        self.warehouse = warehouse
        self._storage = storage
        self._tables = dict(base.tables)
        self._written: dict[Table, Parts] = {}

    def write(
        self, table: Table, rows: DataFrame, *, open: str = "false", full: bool, placed: bool = False
    ) -> None:
        """Rows of the table: `open` is SQL of those that replace the open ones of the run before, the others are
        closed and added; `full`: what was closed before is void. Rows of several writes add up. `placed`: all rows of
        a folder are in one partition already, and best in the order of files."""
        parted = rows.selectExpr(*table.schema.names, f"if({open}, '{OPEN}', '{CLOSED}') as {PART}")
        more = table in self._written
        closed, opened = self._storage.write(table, self.number, parted, placed=placed, full=full, more=more)
        before = () if full else self.base.tables.get(table.name, Parts()).closed
        others = tuple(part for part in before if part != closed)
        self._tables[table.name] = self._written[table] = Parts((*others, closed), opened)

    def read(self, table: Table) -> DataFrame:
        """The table as this run has written it so far."""
        return self.warehouse.read(table, Snapshot(tables=self._tables))

    def commit(self, *, as_of_ms: int, final_ms: int, folded: dict[str, Folded]) -> Snapshot:
        """From now on this is what readers find."""
        for table, parts in self._written.items():
            merged = self._storage.merge(table, self.number, parts.closed)
            self._tables[table.name] = Parts(merged, parts.open)
        tables = self._storage.publish(self.number, self._tables)
        used = {part for parts in tables.values() for part in parts.all}
        known = (*self.base.tables.values(), *self._written.values())
        unused = tuple({part: None for parts in known for part in parts.all if part not in used})
        snapshot = Snapshot(
            self.number, as_of_ms, final_ms, folded, dict(tables), unused, self._storage.format
        )
        text = msgspec.json.format(msgspec.json.encode(snapshot)).decode()
        files.write_text_atomically(self.warehouse.spark, f"{self.warehouse.root}/{SNAPSHOT}", text)
        for part in self.base.unused:
            self._storage.delete(part)
        return snapshot


def with_partitions(rows: DataFrame, table: Table) -> DataFrame:
    """The rows and the columns of the table's partitions."""
    return rows.withColumns({partition.name: F.expr(partition.sql) for partition in table.partitions})


def parted_by(table: Table) -> tuple[str, ...]:
    """Columns whose values are folders."""
    return PART, *(partition.name for partition in table.partitions)


def arranged(rows: DataFrame, table: Table, *, placed: bool = False) -> DataFrame:
    """Rows with the columns of `parted_by`, so that each folder gets one file, sorted."""
    columns = parted_by(table)
    together = rows if placed else rows.repartition(*columns)
    return together.sortWithinPartitions(*columns, *table.sort)


class ParquetFolders:
    """A part is a folder `<table>/size-<size>/run=<run>/part=…` of Parquet files; sizes grow as parts are merged."""

    format = "parquet"

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root

    def write(
        self, table: Table, run: int, rows: DataFrame, *, placed: bool, full: bool, more: bool
    ) -> tuple[str, str]:
        """The parts are the run's own, `full` or not."""
        folder = f"{table.name}/size-0/run={run}"
        self._write(table, folder, rows, placed=placed, more=more)
        return f"{folder}/{PART}={CLOSED}", f"{folder}/{PART}={OPEN}"

    def read(self, table: Table, parts: Sequence[str]) -> DataFrame:
        existing = [part for part in parts if files.exists(self._spark, f"{self._root}/{part}")]
        frames = [
            self._spark.read.schema(table.stored_schema)
            .option("basePath", f"{self._root}/{part}")
            .parquet(f"{self._root}/{part}")
            for part in existing
        ]
        if not frames:
            return self._spark.createDataFrame([], table.stored_schema)
        return reduce(DataFrame.unionByName, frames)

    def merge(self, table: Table, run: int, closed: tuple[str, ...]) -> tuple[str, ...]:
        """As many as MERGED of one size become one of the next, so a part is rewritten a few times in its life."""
        by_size: dict[int, list[str]] = {}
        for part in closed:
            by_size.setdefault(_size(part), []).append(part)
        for size, parts in sorted(by_size.items()):
            if len(parts) >= MERGED:
                folder = f"{table.name}/size-{size + 1}/run={run}"
                rows = self.read(table, parts).selectExpr(*table.schema.names, f"'{CLOSED}' as {PART}")
                self._write(table, folder, rows, placed=False, more=False)
                others = tuple(part for part in closed if part not in parts)
                return self.merge(table, run, (*others, f"{folder}/{PART}={CLOSED}"))
        return closed

    def publish(self, run: int, tables: Mapping[str, Parts]) -> Mapping[str, Parts]:
        """Return the parts as they are: no reader knows them before the snapshot names them."""
        return tables

    def delete(self, part: str) -> None:
        files.delete(self._spark, f"{self._root}/{part}")
        run = f"{self._root}/{part.rpartition('/')[0]}"
        if not any(name.startswith(PART) for name in files.names(self._spark, run)):
            files.delete(self._spark, run)

    def _write(self, table: Table, folder: str, rows: DataFrame, *, placed: bool, more: bool) -> None:
        if not more:
            files.delete(self._spark, f"{self._root}/{folder}")  # of a run that died
        rows = arranged(with_partitions(rows, table), table, placed=placed)
        rows.write.mode("append").partitionBy(*parted_by(table)).parquet(f"{self._root}/{folder}")


def _size(part: str) -> int:
    return int(part.split("/")[1].removeprefix("size-"))
