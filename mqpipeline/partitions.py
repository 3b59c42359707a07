"""Steps in Python that take all rows of a partition at once: how many partitions there are, and their rows.

Such a partition is in memory as a whole, which Spark's own steps need not be: there must be enough of them.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"


def partitions_of(rows: DataFrame) -> int:
    """How many a shuffle of these rows makes."""
    return int(str(rows.sparkSession.conf.get(PARTITIONS)))


@contextmanager
def enough_for(spark: SparkSession, rows: int, each: int) -> Iterator[None]:
    """Within, a shuffle makes as many as leave about `each` of so many rows in one; more if the session has more."""
    before = str(spark.conf.get(PARTITIONS))
    spark.conf.set(PARTITIONS, str(max(int(before), -(-rows // each))))
    try:
        yield
    finally:
        spark.conf.set(PARTITIONS, before)


def table_of(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    """Return all rows of a partition as one table, or None if it has none."""
    held = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(held).combine_chunks() if held else None
