"""What has landed, as a table."""

from pyspark.sql import DataFrame, SparkSession

from pipeline.landing.folders import usable
from pipeline.landing.progress import read_progress
from pipeline.schemas import EVENTS, HEARTBEATS, Table


def read_events(spark: SparkSession, root: str) -> DataFrame:
    """EVENTS, each batch whole or not at all."""
    return read_landed(spark, root, EVENTS)


def read_heartbeats(spark: SparkSession, root: str) -> DataFrame:
    """HEARTBEATS. A beat is there twice if it was read again after a primary was lost."""
    return read_landed(spark, root, HEARTBEATS)


def read_landed(
    spark: SparkSession, root: str, table: Table, *, from_day: str = "", to_day: str = "~"
) -> DataFrame:
    """A landed table; of days (`2026-01-31`) in [from_day, to_day] only. What lands later is not seen."""
    folder = f"{root.rstrip('/')}/{table.name}"
    landed = read_progress(spark, folder).batch
    found = [one for one in usable(spark, folder, landed) if from_day <= one.day <= to_day]
    if not found:
        return spark.createDataFrame([], table.schema)
    paths = [f"{folder}/{one}" for one in found]
    return spark.read.schema(table.schema).parquet(*paths).select(*table.schema.names)
