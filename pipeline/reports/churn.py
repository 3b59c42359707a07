"""How much changes: by cluster and cause, and of each topic."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from pipeline.reports.acts import ACT, changes, entries
from pipeline.reports.rows import each_window, happened, report
from pipeline.reports.shape import WINDOW, unit
from pipeline.schemas import REPORT_CHURN, REPORT_CHURN_TOPICS
from pipeline.windows import HOUR_MS, LATE_MS, Window

BROKER = ("namespace", "inc", "broker")
EVER = (1 << 63) - 1


def churn(
    events: DataFrame,
    broker_versions: DataFrame,
    of: Sequence[Window],
    hours: tuple[int, int],
    as_of: int,
    late_ms: int = LATE_MS,
) -> DataFrame:
    """REPORT_CHURN by cluster and cause, for the windows and for each of the `hours` from one time to another, from
    clean events and BROKER_VERSIONS.

    An act counts at the time at which it changed an answer first, and in each cluster that it touches; `cluster` is
    null where it touches none. `pairs` are the queue data that it changed, or that came or went with the broker."""
    acts = entries(events).transform(_touched, broker_versions)
    begin, end = hours
    hour = F.expr(f"act_ms - pmod(act_ms, {HOUR_MS})")
    hourly = acts.where((F.col("act_ms") >= begin) & (F.col("act_ms") < end)).select(
        "*",
        F.lit("hour").alias("window"),
        hour.alias("from_ms"),
        F.least(hour + HOUR_MS, F.lit(as_of)).alias("to_ms"),
    )
    counted = happened(acts, of, "act_ms").unionByName(hourly)
    rows = counted.groupBy("namespace", *WINDOW, "cluster", "cause").agg(
        F.sum("acts").alias("acts"), F.sum("pairs").alias("pairs")
    )
    named = rows.withColumn("unit", F.concat_ws(":", F.coalesce("cluster", F.lit("")), "cause"))
    return named.transform(report, REPORT_CHURN, as_of, late_ms)


def _touched(entries: DataFrame, broker_versions: DataFrame) -> DataFrame:
    """Acts by the clusters that they touch: `namespace`, `cluster`, `cause`, `act_ms`, `acts`, `pairs`."""
    clusters = broker_versions.groupBy("namespace", F.col("broker").alias("touched")).agg(
        F.max_by("cluster", F.struct("inc", "from_id")).alias("lies_in")
    )
    one = "array(struct(broker as touched, coalesce(topics, 0) + {rows} as pairs))".format(
        rows="coalesce(aggregate(rows, 0, (sum, x) -> sum + size(x.topics)), 0)"
    )
    several = "transform(rows, x -> struct(x.broker as touched, size(x.topics) as pairs))"
    each = F.when(F.expr("broker is null and size(rows) > 0"), F.expr(several)).otherwise(F.expr(one))
    told = entries.select(*ACT, "kind", "cluster", "act_ms", F.inline(each))
    known = told.join(clusters, ["namespace", "touched"], "left")
    return known.groupBy(*ACT, F.coalesce("cluster", "lies_in").alias("cluster")).agg(
        F.min("act_ms").alias("act_ms"), changes().alias("acts"), F.sum("pairs").alias("pairs")
    )


def churn_topics(
    events: DataFrame, route_versions: DataFrame, of: Sequence[Window], as_of: int, late_ms: int = LATE_MS
) -> DataFrame:
    """REPORT_CHURN_TOPICS: of each topic the changes that name it or a broker holding it at the time, each once, from
    clean events and ROUTE_VERSIONS."""
    told = entries(events)
    named = happened(_naming(told), of, "act_ms").groupBy("namespace", *WINDOW, "topic").count()
    held = _holding(_of_brokers(told), route_versions, of)
    rows = named.unionByName(held).groupBy("namespace", *WINDOW, "topic").agg(F.sum("count").alias("changes"))
    return rows.withColumn("unit", unit("topic", "topic")).transform(
        report, REPORT_CHURN_TOPICS, as_of, late_ms
    )


def _naming(entries: DataFrame) -> DataFrame:
    """`namespace`, `act_ms`, `topic` of the acts that name a topic, but for acts on the whole of a broker that held the
    topic then: those count by the holding."""
    rows = F.expr(
        """filter(rows, x -> not whole or (id_ms = act_ms and x.after = '') or (id_ms > act_ms and x.before = ''))"""
    )
    topics = F.concat(
        F.coalesce(F.flatten(F.transform(rows, lambda row: row["topics"])), F.array()),
        F.when(~F.col("whole") & F.col("named").isNotNull(), F.col("named")).otherwise(F.array()),
    )
    each = entries.select(*ACT, "act_ms", F.explode(topics).alias("topic")).where("topic is not null")
    return each.groupBy(*ACT, "topic").agg(F.min("act_ms").alias("act_ms"))


def _of_brokers(entries: DataFrame) -> DataFrame:
    """Acts on the whole of a broker: BROKER, `at_ms`, and `count`, how many at that time."""
    acts = entries.where("whole").groupBy(*ACT).agg(F.min("act_ms").alias("at_ms"), changes().alias("count"))
    return acts.groupBy(*BROKER, "at_ms").agg(F.sum("count").alias("count"))


def _holding(acts: DataFrame, route_versions: DataFrame, of: Sequence[Window]) -> DataFrame:
    """`count` of acts on brokers that held the topic, by topic and window.

    A version never meets an act: each broker numbers its acts once, so that a version, and a window, is a range of
    numbers, and the acts of one within the other are the overlap of two ranges."""
    versions = route_versions.select(
        *BROKER, "topic", "from_ms", F.coalesce("to_ms", F.lit(EVER)).alias("to_ms")
    )
    windows = each_window(acts.select(*BROKER).distinct(), of)
    edges = F.explode(F.array("from_ms", "to_ms")).alias("at_ms")
    asked = versions.select(*BROKER, edges).union(windows.select(*BROKER, edges)).distinct()
    before = Over.partitionBy(*BROKER).orderBy("at_ms").rowsBetween(Over.unboundedPreceding, -1)
    numbers = (
        asked.withColumn("count", F.lit(0))
        .unionByName(acts)
        .groupBy(*BROKER, "at_ms")
        .agg(F.sum("count").alias("count"))
        .select(*BROKER, "at_ms", F.coalesce(F.sum("count").over(before), F.lit(0)).alias("number"))
    )

    def numbered(ranges: DataFrame, first: str, last: str) -> DataFrame:
        begin = numbers.select(*BROKER, F.col("at_ms").alias("from_ms"), F.col("number").alias(first))
        end = numbers.select(*BROKER, F.col("at_ms").alias("to_ms"), F.col("number").alias(last))
        both = ranges.join(begin, [*BROKER, "from_ms"]).join(end, [*BROKER, "to_ms"])
        return both.where(F.col(first) < F.col(last))

    held = numbered(versions, "first", "last").drop("from_ms", "to_ms")
    met = held.join(numbered(windows, "begin", "end"), [*BROKER])
    overlap = F.least("last", "end") - F.greatest("first", "begin")
    counted = met.select("namespace", *WINDOW, "topic", overlap.alias("count")).where("count > 0")
    return counted.groupBy("namespace", *WINDOW, "topic").agg(F.sum("count").alias("count"))
