"""Entries of the stream of heartbeats as rows of HEARTBEATS."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

BEAT_COLUMNS = (
    "stream string, id_ms bigint, id_n bigint, "
    "cluster string, broker string, id string, addr string, code string"
)


def heartbeats(raw: DataFrame) -> DataFrame:
    """Raw (BEAT_COLUMNS) -> HEARTBEATS with `stream` in the place of `namespace`; what is no number is null."""
    return raw.select(
        "stream",
        "id_ms",
        F.col("id_n").cast("int"),
        "cluster",
        "broker",
        F.col("id").try_cast("bigint").alias("broker_id"),
        "addr",
        F.col("code").try_cast("int"),
    )
