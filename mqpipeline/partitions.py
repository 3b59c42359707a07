"""How many partitions there are. A step in Python may take all rows of one at once, which are in memory as a whole
then, as those of Spark's own steps need not be: there must be enough partitions. Few rows are in one.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from mqpipeline.session import settings_within

PARTITIONS = "spark.sql.shuffle.partitions"


def partitions_of(rows: DataFrame) -> int:
    """How many a shuffle of these rows makes."""
    return int(str(rows.sparkSession.conf.get(PARTITIONS)))


@contextmanager
def enough_for(spark: SparkSession, rows: int, each: int) -> Iterator[None]:
    """Within, a shuffle makes as many as leave about `each` of so many rows in one; more if the session has more."""
    now = int(str(spark.conf.get(PARTITIONS)))
    with settings_within(spark, {PARTITIONS: str(max(now, -(-rows // each)))}):
        yield


def in_one(
    spark: SparkSession, rows: pa.Table | Sequence[Any], schema: StructType | str | None = None
) -> DataFrame:
    """Return few rows as a frame of one partition: no step needs a shuffle of it alone."""
    return spark.createDataFrame(rows, schema).coalesce(1)


def table_of(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    """Return all rows of a partition as one table, or None if it has none."""
    held = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(held).combine_chunks() if held else None
