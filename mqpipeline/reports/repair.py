"""How long outages last: Kaplan-Meier, so that those that still last count for what they have lasted so far."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from mqpipeline.reports.catalogue import REPAIR
from mqpipeline.reports.rows import as_report, happened
from mqpipeline.reports.shape import ROW, clusters_and_brokers
from mqpipeline.states.brokers import BROKER
from mqpipeline.windows import LATE_MS, Window

QUANTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p95_ms": 0.95}
ROUNDING = 1e-9  # of a product of many ratios


def repair(brokers: DataFrame, windows: Sequence[Window], as_of: int, late_ms: int = LATE_MS) -> DataFrame:
    """Return REPAIR of clusters and brokers from the states of brokers: `namespace`, `cluster`, `broker`, `state`,
    `from_ms`, `to_ms`.

    The outages are those that begin in the window. One that UP does not follow at once, since it still lasts or since
    the broker counts as retired, is open: it lasted at least so long. Quantile q is the first time t at which by the
    estimate no more than 1 - q of the outages last longer; null where none is known."""
    begun = happened(outages(brokers), windows, "down_ms").withColumn("unit", clusters_and_brokers())
    return (
        begun.transform(_survival).groupBy(*ROW).agg(*_values()).transform(as_report, REPAIR, as_of, late_ms)
    )


def outages(states: DataFrame) -> DataFrame:
    """Each DOWN interval of a broker: `down_ms`, when it began, `lasted_ms`, and `repaired`, whether UP followed."""
    following = F.lead(F.struct("state", "from_ms")).over(Over.partitionBy(*BROKER).orderBy("from_ms"))
    repaired = F.expr("following.state = 'UP' and following.from_ms = to_ms")
    return (
        states.withColumn("following", following)
        .withColumn("repaired", F.coalesce(repaired, F.lit(False)))
        .where("state = 'DOWN'")
        .select(
            *BROKER, F.col("from_ms").alias("down_ms"), F.expr("to_ms - from_ms as lasted_ms"), "repaired"
        )
    )


def _survival(begun: DataFrame) -> DataFrame:
    """Adds `survival`: the estimated share of outages that last longer than this one did.

    Outages of equal length stand one after the other, repairs first, and their factors (n - i - 1) / (n - i)
    multiply to the 1 - d / n of the textbook. Logarithms, since SQL sums but does not multiply."""
    by_length = Over.partitionBy(*ROW).orderBy("lasted_ms", ~F.col("repaired"))
    remaining = F.count("*").over(Over.partitionBy(*ROW)) - F.row_number().over(by_length)
    factor = F.when(F.col("repaired"), F.log(F.col("remaining") / (F.col("remaining") + 1))).otherwise(0)
    none_left = F.col("repaired") & (F.col("remaining") == 0)
    return (
        begun.withColumn("remaining", remaining)
        .withColumn("logarithm", F.sum(factor).over(by_length.rowsBetween(Over.unboundedPreceding, 0)))
        .withColumn("survival", F.when(none_left, 0).otherwise(F.exp("logarithm")))
    )


def _values() -> list[Column]:
    def quantile(name: str, q: float) -> Column:
        return F.min(F.when(F.col("survival") <= 1 - q + ROUNDING, F.col("lasted_ms"))).alias(name)

    return [
        F.count("*").alias("outages"),
        F.count_if(~F.col("repaired")).alias("n_open"),
        *(quantile(name, q) for name, q in QUANTILES.items()),
    ]
