"""How regular heartbeats are, and the timeout that this suggests."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from mqpipeline.reports.catalogue import TIMEOUTS
from mqpipeline.reports.rows import as_report, happened
from mqpipeline.reports.shape import MEMBER, ROW, clusters_and_brokers
from mqpipeline.windows import LATE_MS, Window, cells

PER_MILLE = {"p50_ms": 500, "p95_ms": 950, "p99_ms": 990, "p999_ms": 999}
ENOUGH = 1000
SHORTEST_MS, LONGEST_MS = 10_000, 600_000


def timeouts(
    heartbeats: DataFrame, sessions: DataFrame, windows: Sequence[Window], as_of: int, late_ms: int = LATE_MS
) -> DataFrame:
    """Return TIMEOUTS of clusters and brokers from HEARTBEATS and BROKER_SESSIONS: of the times between two
    heartbeats that follow each other in a session, by the window of the later.

    `missed` are the heartbeats that would have fitted in, of gaps a whole number of medians long; the suggestion
    is the longer of four medians and one and a half p99.9, within 10 to 600 s, and null of fewer than ENOUGH gaps."""
    counted = gaps(heartbeats, sessions).transform(_counted, windows)
    lengths = (
        counted.withColumn("unit", clusters_and_brokers())
        .groupBy(*ROW, "gap_ms")
        .agg(F.sum("count").alias("count"))
    )
    rows = (
        lengths.transform(_ranked)
        .groupBy(*ROW)
        .agg(*_values())
        .withColumn("suggested_timeout_ms", _suggested())
    )
    return rows.transform(as_report, TIMEOUTS, as_of, late_ms)


def gaps(heartbeats: DataFrame, sessions: DataFrame) -> DataFrame:
    """Each gap: its member, `at_ms`, when the later heartbeat came, and `gap_ms`.

    Sessions stand among the heartbeats of their address: between two that have a start between them is no gap."""
    begun = sessions.select(*MEMBER, F.col("start_ms").alias("at_ms"))
    received = heartbeats.select(*MEMBER, F.col("id_ms").alias("at_ms"), F.col("id_n").alias("n"))
    in_time = Over.partitionBy(*MEMBER).orderBy("at_ms", "n")  # null, a session's start, comes first
    before = F.lag(F.struct("at_ms", "n")).over(in_time)
    between = received.unionByName(begun, allowMissingColumns=True).withColumn("before", before)
    consecutive = between.where("n is not null and before.n is not null")
    return consecutive.select(*MEMBER, "at_ms", (F.col("at_ms") - F.col("before.at_ms")).alias("gap_ms"))


def _counted(gaps: DataFrame, windows: Sequence[Window]) -> DataFrame:
    """`count` of each length by broker and window: first in the cells that the windows' edges cut time into, since
    each gap lies in one cell, but in many windows."""
    in_cells = (
        happened(gaps, cells(windows), "at_ms")
        .groupBy("namespace", "cluster", "broker", "from_ms", "gap_ms")
        .count()
    )
    return happened(in_cells.withColumnRenamed("from_ms", "cell_ms"), windows, "cell_ms")


def _ranked(lengths: DataFrame) -> DataFrame:
    """Adds to each length how many gaps are at most so long, `upto`, how many there are, `n`, and the median."""
    row = Over.partitionBy(*ROW)
    upto = F.sum("count").over(row.orderBy("gap_ms").rowsBetween(Over.unboundedPreceding, 0))
    counted = lengths.withColumn("upto", upto).withColumn("n", F.sum("count").over(row))
    return counted.withColumn("median", _nearest_rank(500).over(row))


def _nearest_rank(per_mille: int) -> Column:
    """The least length with ceil(q n) gaps at most so long."""
    return F.min(F.when(F.col("upto") * 1000 >= F.col("n") * per_mille, F.col("gap_ms")))


def _values() -> list[Column]:
    missed = F.greatest(F.round(F.try_divide("gap_ms", "median")) - 1, F.lit(0))
    return [
        F.sum("count").alias("gaps"),
        *(_nearest_rank(per_mille).alias(name) for name, per_mille in PER_MILLE.items()),
        F.max("gap_ms").alias("max_ms"),
        F.sum(missed.cast("bigint") * F.col("count")).alias("missed"),
    ]


def _suggested() -> Column:
    long_enough = F.greatest(F.col("p50_ms") * 4.0, F.col("p999_ms") * 1.5)
    within = F.least(F.greatest(long_enough, F.lit(float(SHORTEST_MS))), F.lit(float(LONGEST_MS)))
    return F.when(F.col("gaps") >= ENOUGH, within)
