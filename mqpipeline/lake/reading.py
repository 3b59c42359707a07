"""A table's files as a DataFrame. Spark needs no jar for that: the log is read here, and names the files. Those of a
small table are read here as well, wherever they are; other files by tasks of Spark."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from mqpipeline.lake.files import Written
from mqpipeline.lake.log import File, damaged_file
from mqpipeline.lake.place import Place
from mqpipeline.schemas import Table

FILES_MOST: Final = 100
BYTES_MOST: Final = 1 << 20
"""Files of a small table, and bytes of them together."""
HELD_MOST: Final = 32 << 20
"""Bytes of its rows: what is compressed may be anything."""
ROWS_AT_ONCE: Final = 256


def rows_of(
    spark: SparkSession,
    place: Place,
    table: Table,
    files: Iterable[File | Written],
    *,
    partitions: bool = True,
) -> DataFrame:
    """Return the rows of these files of a table: its columns, and those of its `partitions`, which are folders of the
    files' paths then. Raises LakeError if a file of a small table is not there or damaged."""
    listed = [*files]
    schema = table.stored_schema if partitions else table.schema
    if not listed:
        return spark.createDataFrame([], schema)
    if (rows := _rows_here(place, listed, to_arrow_schema(schema, timezone="UTC"))) is not None:
        return spark.createDataFrame(rows, schema)
    reader = spark.read.schema(schema)
    if partitions:
        reader = reader.option("basePath", place.for_spark())
    return reader.parquet(*(place.for_spark(file.path) for file in listed)).select(*schema.names)


def _rows_here(place: Place, files: Sequence[File | Written], schema: pa.Schema) -> pa.Table | None:
    """Return all rows as this schema has them, None if the table is not a small one."""
    if len(files) > FILES_MOST or sum(file.size for file in files) > BYTES_MOST:
        return None
    held, batches = 0, []
    for file in files:
        try:
            for rows in _batches(place, file.path):
                batches.append(_as_stored(rows, file, schema))
                held += batches[-1].nbytes
                if held > HELD_MOST:
                    return None
        except (pa.ArrowException, OSError) as error:
            raise damaged_file(place, file.path, error) from None
    return pa.Table.from_batches(batches, schema)


def _batches(place: Place, path: str) -> Iterator[pa.RecordBatch]:
    with place.open(path) as opened:
        yield from pq.ParquetFile(opened).iter_batches(ROWS_AT_ONCE)


def _as_stored(rows: pa.RecordBatch, file: File | Written, schema: pa.Schema) -> pa.RecordBatch:
    """With the columns that the folders of the file name, and null in those that it was written without."""
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.schema.names
        else pa.repeat(pa.scalar(file.partition.get(field.name), pa.utf8()), len(rows)).cast(field.type)
        if field.name in file.partition
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
