"""Making the many small files of a streaming day few."""

import time

from pyspark.sql import SparkSession

from mqpipeline import files
from mqpipeline.landing.folders import WHOLE, Folder, folders, usable
from mqpipeline.landing.progress import read_progress
from mqpipeline.schemas import Table

FILE_BYTES = 128 << 20  # aimed at; between 64 and 256 MB
GRACE_S = 3600.0  # a reader that has listed its files is done with them by then


def compact(
    spark: SparkSession,
    root: str,
    table: Table,
    day: str,
    *,
    file_bytes: int = FILE_BYTES,
    grace_s: float = GRACE_S,
) -> Folder | None:
    """Rows of all batches of a day, such as `2026-01-31`, that have landed become one folder, sorted as the table is.

    What it replaces is deleted by a later call, after `grace_s`. None if there was one folder or none. Killed at any
    point it changes nothing, or all. There must be one of these at a time, and no other for the same day."""
    folder = f"{root.rstrip('/')}/{table.name}"
    sources = usable(spark, folder, read_progress(spark, folder).batch, day)
    _delete_replaced(spark, folder, day, set(sources), grace_s)
    if len(sources) < 2:
        return None
    target = Folder(day, sources[0].first, sources[-1].last)
    paths = [f"{folder}/{source}" for source in sources]
    parts = -(-sum(files.size(spark, path) for path in paths) // file_bytes)
    rows = spark.read.schema(table.schema).parquet(*paths)
    ordered = rows.repartitionByRange(parts, *table.sort) if parts > 1 else rows.coalesce(1)
    ordered.sortWithinPartitions(*table.sort).write.mode("overwrite").parquet(f"{folder}/{target}")
    return target


def _delete_replaced(spark: SparkSession, folder: str, day: str, used: set[Folder], grace_s: float) -> None:
    """Folders within one that was made `grace_s` ago, and those that were never finished."""
    now = time.time()
    for stale in set(folders(spark, folder, day)) - used:
        around = next((other for other in used if stale.within(other)), None)
        if around is not None and now - files.changed_s(spark, f"{folder}/{around}/{WHOLE}") >= grace_s:
            files.delete(spark, f"{folder}/{stale}")
