"""What has landed, as a table."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqpipeline.landing.folders import usable
from mqpipeline.landing.progress import read_progress
from mqpipeline.schemas import EVENTS, HEARTBEATS, Table


def read_events(spark: SparkSession, root: str, *, after_batch: int = 0) -> DataFrame:
    """EVENTS, each batch whole or not at all; only of batches after this one."""
    return read_landed(spark, root, EVENTS, after_batch=after_batch).where(F.col("batch") > after_batch)


def read_heartbeats(spark: SparkSession, root: str, *, after_batch: int = 0) -> DataFrame:
    """HEARTBEATS. A heartbeat is there twice if it was read again after a primary was lost, and of a compacted day
    all are, whatever the batch."""
    return read_landed(spark, root, HEARTBEATS, after_batch=after_batch)


def read_landed(
    spark: SparkSession,
    root: str,
    table: Table,
    *,
    from_day: str = "",
    to_day: str = "~",
    after_batch: int = 0,
) -> DataFrame:
    """A landed table: of days (`2026-01-31`) in [from_day, to_day] only, and only folders that hold any batch after
    this one. What lands later is not seen."""
    folder = f"{root.rstrip('/')}/{table.name}"
    landed = read_progress(spark, folder).batch
    usable_folders = [
        source
        for source in usable(spark, folder, landed)
        if from_day <= source.day <= to_day and source.last > after_batch
    ]
    if not usable_folders:
        return spark.createDataFrame([], table.schema)
    paths = [f"{folder}/{source}" for source in usable_folders]
    return spark.read.schema(table.schema).parquet(*paths).select(*table.schema.names)
