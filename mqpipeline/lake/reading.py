"""A table's files as a DataFrame. Spark needs no jar for that: the log is read here, and names the files."""

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from mqpipeline.lake.files import Written
from mqpipeline.lake.log import File
from mqpipeline.lake.place import Place
from mqpipeline.schemas import Table


def rows_of(
    spark: SparkSession,
    place: Place,
    table: Table,
    files: Iterable[File | Written],
    *,
    partitions: bool = True,
) -> DataFrame:
    """Return the rows of these files of a table: its columns, and those of its `partitions`, which are folders of the
    files' paths then."""
    paths = [place.for_spark(file.path) for file in files]
    schema = table.stored_schema if partitions else table.schema
    if not paths:
        return spark.createDataFrame([], schema)
    reader = spark.read.schema(schema)
    if partitions:
        reader = reader.option("basePath", place.for_spark())
    return reader.parquet(*paths).select(*schema.names)
