"""A table's files as a DataFrame. Spark needs no jar for that: the log is read here, and names the files."""

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from mqpipeline.lake.log import File
from mqpipeline.lake.place import Place
from mqpipeline.schemas import Table


def rows_of(spark: SparkSession, place: Place, table: Table, files: Iterable[File]) -> DataFrame:
    """Return the rows of these files of a table: its columns, without those of its partitions."""
    paths = [place.for_spark(file.path) for file in files]
    if not paths:
        return spark.createDataFrame([], table.schema)
    return spark.read.schema(table.schema).parquet(*paths)
