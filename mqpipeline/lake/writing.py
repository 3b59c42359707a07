"""Rows of a DataFrame become files of a table. Tasks write them; what they wrote is no part of the table until a commit
says so.

What is planned here is a frame of LINES: its tasks write files, and say which."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from mqpipeline.lake.files import FILE_BYTES, LINES, NewFile, Written, line
from mqpipeline.lake.place import Place
from mqpipeline.lines import collected
from mqpipeline.schemas import Table

Step = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class _Target(NamedTuple):
    """What a task needs: columns whose values are folders, those of the files, those that the log has bounds of."""

    place: Place
    folders: tuple[str, ...]
    columns: StructType
    indexed: tuple[str, ...]


class ArrowRows(NamedTuple):
    """Rows that `step` makes of the batches of each partition of a frame: the columns of a table and of its partitions,
    in the order of its files. All rows of a folder are of one partition."""

    of: DataFrame
    step: Step

    def frame(self, table: Table) -> DataFrame:
        """Return them with the table's columns."""
        return self.of.mapInArrow(self.step, table.stored_schema).select(*table.schema.names)


def plan(rows: DataFrame, table: Table, place: Place) -> DataFrame:
    """Plan to write rows, which have the table's columns and those of its partitions; sorted, a file a folder or
    several large ones."""
    folders = tuple(partition.name for partition in table.partitions)
    together = rows.hint("rebalance", *map(F.col, folders)) if folders else rows
    target = _target(table, place)
    arranged = together.select(*target.columns.names, *folders).sortWithinPartitions(*folders, *table.sort)
    return arranged.mapInArrow(partial(_write, target), from_arrow_schema(LINES))


def plan_arrow(rows: ArrowRows, table: Table, place: Place) -> DataFrame:
    """Plan to write rows in the tasks that make them: they never are Spark's, which takes longer than to make them."""
    step = partial(_write_made, rows.step, _target(table, place))
    return rows.of.mapInArrow(step, from_arrow_schema(LINES))


def written(plans: Sequence[DataFrame]) -> list[list[Written]]:
    """Write what was planned, all in one job of Spark; return the files of each plan."""
    files: list[list[Written]] = [[] for _ in plans]
    for at, said in collected(dict(enumerate(plans))):
        files[at].append(msgspec.json.decode(said, type=Written))
    return files


def _target(table: Table, place: Place) -> _Target:
    folders = tuple(partition.name for partition in table.partitions)
    columns = StructType([field for field in table.schema.fields if field.name not in folders])
    return _Target(place, folders, columns, table.bounded)


def with_partitions(rows: DataFrame, table: Table) -> DataFrame:
    """Return the rows with the columns of the table's partitions."""
    return rows.withColumns({partition.name: F.expr(partition.sql) for partition in table.partitions})


def _write_made(step: Step, target: _Target, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return _write(target, step(batches))


def _write(target: _Target, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows in the order of folders -> LINES, a `Written` each. One file at a time is in memory."""
    schema = to_arrow_schema(target.columns, timezone="UTC")
    folder, file = None, None
    for batch in batches:
        for of_folder, rows in _by_folder(batch, target.folders):
            if file is not None and (of_folder != folder or file.size >= FILE_BYTES):
                yield line(file.written(target.place))
                file = None
            if file is None:
                folder, file = of_folder, NewFile(schema, target.indexed, of_folder)
            file.add(rows.select(schema.names).cast(schema))
    if file is not None:
        yield line(file.written(target.place))


def _by_folder(
    batch: pa.RecordBatch, folders: tuple[str, ...]
) -> Iterator[tuple[Mapping[str, str], pa.RecordBatch]]:
    """Rows of one folder after another, with its values as text."""
    columns = [batch[name].to_numpy(zero_copy_only=False) for name in folders]
    differs = np.zeros(max(len(batch) - 1, 0), bool)
    for column in columns:
        differs |= column[1:] != column[:-1]
    starts = [0, *(np.flatnonzero(differs) + 1).tolist()] if len(batch) else []
    for start, end in zip(starts, [*starts[1:], len(batch)], strict=False):
        values = {name: str(column[start]) for name, column in zip(folders, columns, strict=True)}
        yield values, batch.slice(start, end - start)
