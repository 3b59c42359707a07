"""A table's files as a DataFrame. Spark needs no jar for that: the log is read here, and names the files. Those of a
small table are read here as well, wherever they are; other files by tasks of Spark."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from mqpipeline.lake.files import Written
from mqpipeline.lake.log import File, LakeError, damaged_file
from mqpipeline.lake.place import Place
from mqpipeline.partitions import in_one
from mqpipeline.schemas import Table

FILES_MOST: Final = 1_000
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
    files' paths then. Raises LakeError if a file of a small table is not there or damaged, or if Spark cannot read from
    where a larger one is."""
    listed = [*files]
    schema = table.stored_schema if partitions else table.schema
    if not listed:
        return in_one(spark, [], schema)
    if (rows := _rows_here(place, listed, to_arrow_schema(schema, timezone="UTC"))) is not None:
        return in_one(spark, rows, schema)
    _require_file_system(spark, place)
    reader = spark.read.schema(schema)
    if partitions:
        reader = reader.option("basePath", place.for_spark())
    return reader.parquet(*(place.for_spark(file.path) for file in listed)).select(*schema.names)


def _require_file_system(spark: SparkSession, place: Place) -> None:
    if place.folder is not None:
        return
    java: Any = spark
    hadoop = java._jvm.org.apache.hadoop.fs.FileSystem
    scheme = place.url.partition("://")[0]
    try:
        hadoop.getFileSystemClass(scheme, java._jsparkSession.sessionState().newHadoopConf())
    except Py4JJavaError:
        raise LakeError(
            f"{place.name} is no small table any more, and Spark cannot read {scheme}://: add Hadoop's jar for it "
            "(option JARS; for S3 hadoop-aws, and name the warehouse s3a://)"
        ) from None


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

    def column(field: pa.Field) -> pa.Array:
        if field.name in rows.schema.names:
            return rows[field.name].cast(field.type)
        if field.name in file.partition:
            return pa.repeat(file.partition[field.name], len(rows)).cast(field.type)
        return pa.nulls(len(rows), field.type)

    columns = [column(field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
