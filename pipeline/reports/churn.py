"""How much changes: by cluster and cause, and of each topic."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.codes import numbered, together
from pipeline.partitions import partitions_of, table_of
from pipeline.reports.acts import ACT, changes, entries
from pipeline.reports.held import Acts, Held, Named
from pipeline.reports.held import changes as changes_by_topic
from pipeline.reports.rows import happened, report
from pipeline.reports.shape import WINDOW, unit
from pipeline.schemas import REPORT_CHURN, REPORT_CHURN_TOPICS
from pipeline.windows import HOUR_MS, LATE_MS, Window, table

BROKER = ("namespace", "inc", "broker")
EVER = (1 << 63) - 1
SPAN = ("from_ms", "to_ms")
TOPIC = ("namespace", "topic")
ACTS = "array<struct<at_ms: bigint, count: bigint>>"
COUNTED = "namespace string, topic string, window string, from_ms bigint, to_ms bigint, changes bigint"


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
    partitions = partitions_of(events)
    place = F.pmod(F.xxhash64("namespace", "topic"), F.lit(partitions)).cast("int").alias("place")
    everywhere = F.explode(F.sequence(F.lit(0), F.lit(partitions - 1))).alias("place")
    none = (
        F.array().cast(ACTS).alias("acts")
    )  # null would take Spark time that grows with the square of the rows
    held = route_versions.select(
        place, *BROKER, "topic", "from_ms", F.coalesce("to_ms", F.lit(EVER)).alias("to_ms"), none
    )
    named = _naming(told).select(place, "namespace", "topic", F.col("act_ms").alias("at_ms"), none)
    acts = _of_brokers(told).select(everywhere, "*")
    rows = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), (held, named, acts))
    counted = rows.repartitionById(partitions, "place").mapInArrow(partial(_counted, tuple(of)), COUNTED)
    return counted.withColumn("unit", unit("topic", "topic")).transform(
        report, REPORT_CHURN_TOPICS, as_of, late_ms
    )


def _counted(of: Sequence[Window], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of one partition: what was held, names of topics, and brokers with `acts` -> COUNTED."""
    rows = table_of(batches)
    if rows is None:
        return
    broker, listed = together(*(rows[name] for name in BROKER)), rows["acts"]
    many = pc.list_value_length(listed).to_numpy()
    told = pc.list_flatten(listed)
    of_acts = (pc.struct_field(told, name).to_numpy() for name in ("at_ms", "count"))
    of_topics = np.flatnonzero(many == 0)
    topic, names = numbered(rows.select([*TOPIC]).take(of_topics), *TOPIC)
    is_held = rows["to_ms"].take(of_topics).is_valid().to_numpy()
    held, named = of_topics[is_held], of_topics[~is_held]
    found = changes_by_topic(
        Acts(np.repeat(broker, many), *of_acts),
        Held(topic[is_held], broker[held], *(rows[name].take(held).to_numpy() for name in SPAN)),
        Named(topic[~is_held], rows["at_ms"].take(named).to_numpy()),
        of,
    )
    windows = table(of)
    for some in found:
        made = [*names.take(some.topic).columns, *windows.take(some.window).columns, some.changes]
        yield from pa.table(made, [*TOPIC, *WINDOW, "changes"]).to_batches()


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
    """Acts on the whole of a broker: BROKER and `acts`, `at_ms` and `count` (how many then) of each."""
    acts = entries.where("whole").groupBy(*ACT).agg(F.min("act_ms").alias("at_ms"), changes().alias("count"))
    at_once = acts.groupBy(*BROKER, "at_ms").agg(F.sum("count").alias("count"))
    return at_once.groupBy(*BROKER).agg(F.collect_list(F.struct("at_ms", "count")).alias("acts"))
