"""How much changes, by cluster and cause."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from mqpipeline.reports.catalogue import CHURN
from mqpipeline.reports.operations import OPERATION, changes, entries
from mqpipeline.reports.rows import as_report, happened
from mqpipeline.reports.shape import WINDOW
from mqpipeline.windows import HOUR_MS, LATE_MS, Window


def churn(
    events: DataFrame,
    broker_versions: DataFrame,
    windows: Sequence[Window],
    hours: tuple[int, int],
    as_of: int,
    late_ms: int = LATE_MS,
) -> DataFrame:
    """Return CHURN by cluster and cause, for the windows and for each of the `hours` from one time to another, from
    clean events and BROKER_VERSIONS.

    An operation counts at the time at which it changed an answer first, and in each cluster that it touches;
    `cluster` is null where it touches none. `pairs` are the queue data that it changed, or that came or went with the
    broker."""
    operations = entries(events).transform(_touched, broker_versions)
    begin, end = hours
    hour = F.expr(f"operation_ms - pmod(operation_ms, {HOUR_MS})")
    hourly = operations.where((F.col("operation_ms") >= begin) & (F.col("operation_ms") < end)).select(
        "*",
        F.lit("hour").alias("window"),
        hour.alias("from_ms"),
        F.least(hour + HOUR_MS, F.lit(as_of)).alias("to_ms"),
    )
    counted = happened(operations, windows, "operation_ms").unionByName(hourly)
    rows = counted.groupBy("namespace", *WINDOW, "cluster", "cause").agg(
        F.sum("acts").alias("acts"), F.sum("pairs").alias("pairs")
    )
    named = rows.withColumn("unit", F.concat_ws(":", F.coalesce("cluster", F.lit("")), "cause"))
    return named.transform(as_report, CHURN, as_of, late_ms)


def _touched(entries: DataFrame, broker_versions: DataFrame) -> DataFrame:
    """Operations by the clusters that they touch: `namespace`, `cluster`, `cause`, `operation_ms`, `acts`, `pairs`."""
    single = "array(struct(broker as touched, coalesce(topics, 0) + {rows} as pairs))".format(
        rows="coalesce(aggregate(rows, 0, (sum, x) -> sum + size(x.topics)), 0)"
    )
    several = "transform(rows, x -> struct(x.broker as touched, size(x.topics) as pairs))"
    each = F.when(F.expr("broker is null and size(rows) > 0"), F.expr(several)).otherwise(F.expr(single))
    touched = entries.select(*OPERATION, "kind", "cluster", "operation_ms", F.inline(each))
    known = touched.transform(_with_cluster, broker_versions)
    return known.groupBy(*OPERATION, F.coalesce("cluster", "lies_in").alias("cluster")).agg(
        F.min("operation_ms").alias("operation_ms"), changes().alias("acts"), F.sum("pairs").alias("pairs")
    )


def _with_cluster(touched: DataFrame, broker_versions: DataFrame) -> DataFrame:
    """Adds `lies_in`: the cluster of the broker `touched` at that time, of one not known yet the first that is."""
    versions = broker_versions.where("cluster is not null").select(
        "namespace",
        "inc",
        F.col("broker").alias("touched"),
        F.col("from_ms").alias("operation_ms"),
        F.col("cluster").alias("lies_in"),
    )
    in_time = Over.partitionBy("namespace", "inc", "touched").orderBy("operation_ms", F.col("op").isNotNull())
    so_far = in_time.rowsBetween(Over.unboundedPreceding, Over.currentRow)
    from_then = in_time.rowsBetween(Over.currentRow, Over.unboundedFollowing)
    lies_in = F.coalesce(
        F.last("lies_in", ignorenulls=True).over(so_far), F.first("lies_in", ignorenulls=True).over(from_then)
    )
    both = touched.unionByName(versions, allowMissingColumns=True)
    return both.withColumn("lies_in", lies_in).where("op is not null")
