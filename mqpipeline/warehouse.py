"""The derived tables: what a run computes, seen by readers as one run left all of them.

A run's tasks write files that no reader sees yet. When it ends, each table gets one commit; then a row in the table
`runs` names the version of each, which is the moment from which readers find them. What can no longer change is closed
and only added to; the rest is open, and each run replaces it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from mqpipeline.lake.files import NewFile, Written
from mqpipeline.lake.log import DERIVED as RETENTION
from mqpipeline.lake.log import RUN, File, LakeError, Log, created, damaged, damaged_file, opened
from mqpipeline.lake.maintenance import care
from mqpipeline.lake.place import Place, place
from mqpipeline.lake.reading import rows_of
from mqpipeline.lake.writing import ArrowRows, Step, plan, plan_arrow, with_partitions, written
from mqpipeline.reports import catalogue
from mqpipeline.schemas import EVENTS, HEARTBEATS, RUNS, TABLES, Partition, Table

CLOSED, OPEN = "closed", "open"
PART: Final = Partition("part", "string", f"'{OPEN}'")
COMPACT_EVERY: Final = 8
"""Runs. Each adds a file a folder."""
COMPACT_RUNS_EVERY: Final = 100
VACUUM_EVERY: Final = 24
"""Runs. It lists all files there are."""
OLD_SNAPSHOT: Final = "_snapshot.json"
DERIVED: Final = (
    RUNS,
    *(table for table in TABLES if table not in (EVENTS, HEARTBEATS)),
    *catalogue.TABLES,
)


class Folded(msgspec.Struct, frozen=True):
    """How far the tables cover a namespace: up to `seq` of incarnation `inc`; which of the landing's batches they
    know, up to `batch`; and whether that is `recorded` (mqpipeline/tables/increments.py)."""

    inc: int
    seq: int
    batch: int
    recorded: bool


class Snapshot(msgspec.Struct, frozen=True):
    """The tables as of `as_of_ms`, of which `versions` are these, of so many `rows` in `files` (`fingerprint`, none of
    a run before these were noted); `as_of` is that of each namespace. Windows that ended by `final_ms` are closed."""

    run: int = 0
    as_of_ms: int = 0
    as_of: Mapping[str, int] = {}
    final_ms: int = 0
    folded: Mapping[str, Folded] = {}
    versions: Mapping[str, int] = {}
    rows: Mapping[str, int] = {}
    files: Mapping[str, int] | None = None

    @property
    def earlier(self) -> dict[str, int]:
        """Namespaces that are gone, or no longer named, and until when they are known."""
        return earlier(self.as_of, self.as_of_ms)


def earlier(as_of: Mapping[str, int], as_of_ms: int) -> dict[str, int]:
    """Return the namespaces whose time is before that of all that are present."""
    return {namespace: at_ms for namespace, at_ms in as_of.items() if at_ms < as_of_ms}


def newest_snapshot(root: Place) -> Snapshot:
    """Return that of the last run, an empty one before the first. Raises LakeError if the table of runs is damaged."""
    log = opened(root.under(RUNS.name), RUNS)
    if log is None and root.has(OLD_SNAPSHOT):
        raise LakeError(f"{root.name} is as release 0.1 wrote it. Run `mqpipeline migrate`")
    if log is not None:
        log.refuse_empty_entry()
    newest = max(log.files(), key=lambda file: file.most["run"], default=None) if log else None
    if log is None or newest is None:
        return Snapshot()
    return max(_snapshots(log, [newest]), key=lambda snapshot: snapshot.run)


def snapshots(root: Place) -> list[Snapshot]:
    """Return those of all runs. Raises as `newest_snapshot` does."""
    log = opened(root.under(RUNS.name), RUNS)
    return [] if log is None else _snapshots(log, log.files())


def _snapshots(log: Log, files: Iterable[File]) -> list[Snapshot]:
    found = []
    for file in files:
        try:
            with log.place.open(file.path) as rows:
                found += pq.read_table(rows).to_pylist(maps_as_pydicts="strict")
        except (pa.ArrowException, OSError) as error:
            raise damaged_file(log.place, file.path, error) from None
    return msgspec.convert(found, list[Snapshot])


def log_of(root: Place, table: Table, snapshot: Snapshot) -> Log:
    """Return the log of a table as of a snapshot that has it. Raises LakeError if it is damaged."""
    place = root.under(table.name)
    log = opened(place, _kept(table), snapshot.versions[table.name])
    if log is None:
        raise damaged(place, f"run {snapshot.run} left it, and it is not there")
    if (lacking := snapshot.rows.get(table.name, 0) - _rows(log.files())) > 0:
        raise damaged(place, f"{lacking:,} rows of run {snapshot.run} are in no file of it")
    known = (snapshot.files or {}).get(table.name)
    if known is not None and known != fingerprint(log.files()):
        raise damaged(place, f"it has other files than run {snapshot.run} left, as where an entry is empty")
    return log


def fingerprint(files: Iterable[File]) -> int:
    """Return a hash of the paths of files."""
    paths = "\n".join(sorted(file.path for file in files))
    return int.from_bytes(blake2b(paths.encode(), digest_size=7).digest())


def _rows(files: Iterable[File | Written]) -> int:
    return sum(file.rows or 0 for file in files)


class Warehouse:
    """All tables under one root. Of two runs at a time one is refused (OtherWriter)."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root.rstrip("/")
        self.place = place(root)

    @property
    def snapshot(self) -> Snapshot:
        """The newest; an empty one before the first run. Raises LakeError if the table of runs is damaged."""
        return newest_snapshot(self.place)

    def read(self, table: Table, snapshot: Snapshot | None = None) -> DataFrame:
        """The table in a snapshot, the newest by default; its columns and those of its partitions."""
        return self.frame(table, self.files(table, snapshot or self.snapshot))

    def read_open(self, table: Table, snapshot: Snapshot) -> DataFrame:
        """Only what the next run replaces; the table's columns."""
        files = [file for file in self.files(table, snapshot) if file.partition[PART.name] == OPEN]
        return self.frame(table, files).selectExpr(*table.schema.names)

    def rows(self, table: Table, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Return the rows of a small table in a snapshot, none if it is not there; without Spark."""
        if table.name not in snapshot.versions:
            return []
        found: list[dict[str, Any]] = log_of(self.place, table, snapshot).delta.to_pyarrow_table().to_pylist()
        return found

    def begin(self) -> "Run":
        """A run over the newest snapshot."""
        return Run(self, self.snapshot)

    def count_open(self, table: Table, snapshot: Snapshot) -> int:
        """Return how many rows the next run replaces."""
        return _rows(file for file in self.files(table, snapshot) if file.partition[PART.name] == OPEN)

    def files(self, table: Table, snapshot: Snapshot) -> list[File]:
        """Return the table's files in a snapshot."""
        return log_of(self.place, table, snapshot).files() if table.name in snapshot.versions else []

    def frame(self, table: Table, files: Iterable[File | Written]) -> DataFrame:
        """Return the rows of these files of the table."""
        return rows_of(self.spark, self.place.under(table.name), table, files)


class Planned(NamedTuple):
    """Rows of a table that a run is to write, as LINES; `full`: what was closed before is void."""

    table: Table
    lines: DataFrame
    full: bool


class Run:
    """What becomes a snapshot when it commits, and leaves everything as it was when it does not."""

    def __init__(self, warehouse: Warehouse, base: Snapshot) -> None:
        self.base = base
        self.number = base.run + 1
        self.warehouse = warehouse
        self._before: dict[Table, Sequence[File]] = {}
        self._written: dict[Table, list[Written]] = {}
        self._logs: dict[Table, Log] = {}

    def plan(self, table: Table, rows: DataFrame, *, open: str = "false", full: bool) -> Planned:
        """Plan to write rows of the table: `open` is SQL of those that replace the open ones of the run before, the
        others are closed and added."""
        kept = _kept(table, PART._replace(sql=f"if({open}, '{OPEN}', '{CLOSED}')"))
        parted = with_partitions(rows.selectExpr(*table.schema.names), kept)
        return Planned(table, plan(parted, kept, self._place(table)), full)

    def plan_arrow(self, table: Table, rows: ArrowRows, *, open_without: str, full: bool) -> Planned:
        """The same of rows that are open where they have nothing in the column `open_without`."""
        parted = rows._replace(step=partial(_with_part, open_without, rows.step))
        return Planned(table, plan_arrow(parted, _kept(table), self._place(table)), full)

    def write(self, *planned: Planned) -> None:
        """Write what was planned, all in one job of Spark. Rows of several writes of a table add up."""
        for table, _, full in planned:
            self._begin(table, full=full)
        for one, files in zip(planned, written([one.lines for one in planned]), strict=True):
            self._written[one.table].extend(files)

    def write_rows(self, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write all rows of a small table without folders, in this process; the next run replaces them."""
        self._begin(table, full=True)
        self._written[table].append(_file(self._place(table), table, rows, {PART.name: OPEN}))

    def _begin(self, table: Table, *, full: bool) -> None:
        """Note that the table is written from now on."""
        if table not in self._written:
            self._logs[table] = self._log(table)  # files without a log are refused
            before = [] if full else self.warehouse.files(table, self.base)
            self._before[table] = [file for file in before if file.partition[PART.name] == CLOSED]
            self._written[table] = []

    def _place(self, table: Table) -> Place:
        return self.warehouse.place.under(table.name)

    def read(self, table: Table) -> DataFrame:
        """The table as this run has written it so far."""
        return self.warehouse.frame(table, self._files_now(table))

    def count_since(self, table: Table, month: str) -> int:
        """Return how many rows the table has from this month (`yyyy-MM`) on, as this run has written it so far."""
        return _rows(file for file in self._files_now(table) if (file.partition["month"] or "") >= month)

    def commit(
        self,
        *,
        as_of_ms: int,
        final_ms: int,
        folded: Mapping[str, Folded],
        as_of: Mapping[str, int] = MappingProxyType({}),
    ) -> Snapshot:
        """From now on this is what readers find. Raises OtherWriter if another run has committed meanwhile."""
        versions = {**self.base.versions, **self._restored()}
        versions |= {table.name: self._commit(table) for table in self._written}
        rows = {**self.base.rows, **{table.name: _rows(log.files()) for table, log in self._logs.items()}}
        files = {table.name: fingerprint(log.files()) for table, log in self._logs.items()}
        files = {**(self.base.files or {}), **files}
        snapshot = Snapshot(self.number, as_of_ms, dict(as_of), final_ms, folded, versions, rows, files)
        runs = created(self.warehouse.place.under(RUNS.name), RUNS)
        runs.commit(RUN, self.number, [_row(snapshot, runs)], {})
        care(runs, self.number, compact_every=COMPACT_RUNS_EVERY)
        for log in self._logs.values():
            care(log, self.number, vacuum_every=VACUUM_EVERY)
        return snapshot

    def _restored(self) -> dict[str, int]:
        """Undo what a run that was killed has committed to tables that this run has not written; return the versions of
        these."""
        versions = {}
        for table in DERIVED:
            version = self.base.versions.get(table.name)
            if version is not None and table not in self._written:
                log = self._log(table)
                if log.changed_since(version):
                    log.replace(self.number, self.warehouse.files(table, self.base))
                    versions[table.name] = log.version
        return versions

    def _commit(self, table: Table) -> int:
        """Commit a table's files and return the version that has them."""
        log = self._logs[table]
        log.replace(self.number, self._files(table))
        care(log, self.number, compact_every=COMPACT_EVERY)
        return log.version

    def _log(self, table: Table) -> Log:
        return created(self.warehouse.place.under(table.name), _kept(table), RETENTION)

    def _files_now(self, table: Table) -> Sequence[File | Written]:
        return self._files(table) if table in self._written else self.warehouse.files(table, self.base)

    def _files(self, table: Table) -> list[File | Written]:
        return [*self._before[table], *self._written[table]]


def _kept(table: Table, part: Partition = PART) -> Table:
    """A table as it is kept: with the folder that says which rows are open."""
    return table._replace(partitions=(part, *table.partitions))


def _with_part(open_without: str, step: Step, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What the step makes, with the folder that says which rows are open."""
    for rows in step(batches):
        yield rows.append_column(PART.name, pc.if_else(rows[open_without].is_null(), OPEN, CLOSED))


def _row(snapshot: Snapshot, runs: Log) -> Written:
    """Write the row of a run."""
    row = {**msgspec.to_builtins(snapshot), "finished_ms": int(time.time() * 1000)}
    row |= {name: list(row[name].items()) for name in ("as_of", "folded", "versions", "rows", "files")}
    return _file(runs.place, RUNS, [row], {})


def _file(
    place: Place, table: Table, rows: Iterable[Mapping[str, Any]], partition: Mapping[str, str]
) -> Written:
    """Write a file of these rows."""
    schema = to_arrow_schema(table.schema, timezone="UTC")
    file = NewFile(schema, table.bounded, partition)
    file.add(pa.RecordBatch.from_pylist([*rows], schema=schema))
    return file.written(place)
