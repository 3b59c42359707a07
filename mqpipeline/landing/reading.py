"""What has landed, as a table."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqpipeline.lake.log import File, opened
from mqpipeline.lake.place import place
from mqpipeline.lake.reading import rows_of
from mqpipeline.schemas import EVENTS, HEARTBEATS, Table


def read_events(spark: SparkSession, root: str, *, after_batch: int = 0) -> DataFrame:
    """EVENTS, each batch whole or not at all; only of batches after this one."""
    rows = read_landed(spark, root, EVENTS, after_batch=after_batch)
    return rows.where(F.col("batch") > after_batch) if after_batch else rows


def read_heartbeats(spark: SparkSession, root: str) -> DataFrame:
    """HEARTBEATS. A heartbeat is there twice if it was read again after a primary was lost."""
    return read_landed(spark, root, HEARTBEATS)


def read_landed(
    spark: SparkSession,
    root: str,
    table: Table,
    *,
    from_day: str = "",
    to_day: str = "~",
    after_batch: int = 0,
) -> DataFrame:
    """A landed table: of days (`2026-01-31`) in [from_day, to_day] only, and only files that hold any batch after this
    one. What lands later is not seen. Raises LakeError if the table is damaged."""
    at = place(root).under(table.name)
    log = opened(at, table)
    files = [] if log is None else log.files()
    wanted = (
        file
        for file in files
        if from_day <= (file.partition["day"] or "") <= to_day and _last_batch(file) > after_batch
    )
    return rows_of(spark, at, table, wanted, partitions=False)


def _last_batch(file: File) -> float:
    """Of a file's rows; of one of which the log does not say it, infinity."""
    last = file.most.get("batch")
    return float("inf") if last is None else last
