"""How unevenly queues and topics lie on brokers."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.reports.rows import each_window, report
from pipeline.reports.shape import unit
from pipeline.schemas import REPORT_SKEW
from pipeline.windows import LATE_MS, Window

EPOCH = ("namespace", "inc", "broker", "epoch")
WRITABLE = "perm & 2 > 0"
THEN = "from_ms <= at_ms and (to_ms is null or at_ms < to_ms)"


def skew(
    sessions: DataFrame,
    broker_versions: DataFrame,
    route_versions: DataFrame,
    of: Sequence[Window],
    as_of: int,
    late_ms: int = LATE_MS,
) -> DataFrame:
    """REPORT_SKEW at each window's end, from BROKER_SESSIONS, BROKER_VERSIONS and ROUTE_VERSIONS.

    Of a cluster, over its brokers that are UP: the write queues, and the topics, that each offers to write to; of a
    topic, over the brokers that show it: its write queues. A broker that offers none counts as 0, and a drained one
    offers none. Null where nobody offers any."""
    ends = [Window("", at_ms, at_ms) for at_ms in sorted({window.to_ms for window in of})]
    up = _up(sessions, ends).join(
        _drained(broker_versions, ends), ["namespace", "inc", "broker", "at_ms"], "left"
    )
    told = _clusters(up, route_versions).unionByName(_topics(up, route_versions), allowMissingColumns=True)
    rows = each_window(told, of).where("at_ms = to_ms").select("*", *_skews("queues"), *_skews("topics"))
    return rows.transform(report, REPORT_SKEW, as_of, late_ms)


def _up(sessions: DataFrame, ends: Sequence[Window]) -> DataFrame:
    """The epochs of brokers that are UP at each time: EPOCH, `cluster`, `at_ms`."""
    then = each_window(sessions, ends).where("start_ms <= to_ms and (end_ms is null or to_ms < end_ms)")
    return then.select(*EPOCH, "cluster", F.col("to_ms").alias("at_ms")).distinct()


def _drained(broker_versions: DataFrame, ends: Sequence[Window]) -> DataFrame:
    """The brokers that are drained at each time; a drain that has an end is over then, recorded or not."""
    drains = broker_versions.where("drain is not null").select(
        "namespace",
        "inc",
        "broker",
        F.col("from_ms").alias("since"),
        F.least("to_ms", "drain.until_ms").alias("until"),
    )
    then = each_window(drains, ends).where("since <= to_ms and (until is null or to_ms < until)")
    named = then.select("namespace", "inc", "broker", F.col("to_ms").alias("at_ms")).distinct()
    return named.withColumn("drained", F.lit(True))


def _clusters(up: DataFrame, route_versions: DataFrame) -> DataFrame:
    """`queues` and `topics`, what each broker offers, as arrays. Versions that begin and end together, as those of a
    registration do, are added up before they meet a time."""
    offered = (
        route_versions.where(WRITABLE)
        .groupBy(*EPOCH, "from_ms", "to_ms")
        .agg(F.sum("write_queues").alias("queues"), F.count("*").alias("topics"))
    )
    shown = up.where("drained is null").join(offered, [*EPOCH]).where(THEN)
    sums = shown.groupBy(*EPOCH, "cluster", "at_ms").agg(
        F.sum("queues").alias("queues"), F.sum("topics").alias("topics")
    )
    each = up.join(sums, [*EPOCH, "cluster", "at_ms"], "left").fillna(0, ["queues", "topics"])
    return (
        each.groupBy("namespace", "cluster", "at_ms")
        .agg(_sorted("queues"), _sorted("topics"), F.count("*").alias("brokers"))
        .withColumn("unit", unit("cluster", "cluster"))
    )


def _topics(up: DataFrame, route_versions: DataFrame) -> DataFrame:
    """`queues`, what each broker offers of the topic, as an array."""
    brokers = up.select(*EPOCH, "at_ms", "drained").distinct()
    shown = route_versions.join(brokers, [*EPOCH]).where(THEN)
    offers = F.expr(f"if({WRITABLE} and drained is null, write_queues, 0)").cast("bigint")
    return (
        shown.select("namespace", "topic", "at_ms", offers.alias("queues"))
        .groupBy("namespace", "topic", "at_ms")
        .agg(_sorted("queues"), F.count("*").alias("brokers"))
        .withColumn("unit", unit("topic", "topic"))
    )


def _sorted(column: str) -> Column:
    return F.sort_array(F.collect_list(column)).alias(column)


def _skews(column: str) -> list[Column]:
    """Of a sorted array: the greatest over the mean, and Gini's coefficient."""
    total = f"aggregate({column}, 0L, (sum, x) -> sum + x)"
    ranks = f"transform({column}, (x, i) -> (2 * i + 1 - size({column})) * x)"
    return [
        F.expr(f"try_divide(element_at({column}, -1) * size({column}), {total})").alias(
            f"{column}_max_to_mean"
        ),
        F.expr(f"try_divide(aggregate({ranks}, 0L, (sum, x) -> sum + x), size({column}) * {total})").alias(
            f"{column}_gini"
        ),
    ]
