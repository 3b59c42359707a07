"""How unevenly queues and topics lie on brokers."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from mqpipeline.codes import numbered
from mqpipeline.partitions import partitions_of, table_of
from mqpipeline.reports.catalogue import SKEW
from mqpipeline.reports.evenness import evenness
from mqpipeline.reports.rows import as_report, each_window
from mqpipeline.reports.shape import unit
from mqpipeline.windows import LATE_MS, Window

EPOCH = ("namespace", "inc", "broker", "epoch")
WRITABLE = "perm & 2 > 0"
THEN = "from_ms <= at_ms and (to_ms is null or at_ms < to_ms)"


def skew(
    sessions: DataFrame,
    broker_versions: DataFrame,
    route_versions: DataFrame,
    ends: Sequence[Window],
    as_of: int,
    late_ms: int = LATE_MS,
) -> DataFrame:
    """Return SKEW at each window's end, from BROKER_SESSIONS, BROKER_VERSIONS and ROUTE_VERSIONS.

    Of a cluster, over its brokers that are UP: the write queues, and the topics, that each offers to write to; of a
    topic, over the brokers that show it: its write queues. A broker that offers none counts as 0, and a drained one
    offers none. Null where none offers any."""
    times = [Window("", at_ms, at_ms) for at_ms in sorted({window.to_ms for window in ends})]
    up = _up(sessions, times).join(
        _drained(broker_versions, times), ["namespace", "inc", "broker", "at_ms"], "left"
    )
    shown = _shown(up, route_versions)
    of_clusters, of_topics = _clusters(up, shown), _even(shown, "topic", "queues")
    rows = each_window(of_clusters.unionByName(of_topics, allowMissingColumns=True), ends)
    return rows.where("at_ms = to_ms").transform(as_report, SKEW, as_of, late_ms)


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


def _shown(up: DataFrame, route_versions: DataFrame) -> DataFrame:
    """What brokers show at each time, by topic: EPOCH, `topic`, `at_ms`, whether it is `offered`, and the `queues` that
    are.

    Reports that use all columns of it have one shuffle in common, and so one read of the versions."""
    brokers = up.select(*EPOCH, "at_ms", "drained").distinct()
    shown = route_versions.join(F.broadcast(brokers), [*EPOCH]).where(THEN)
    offers = shown.withColumn("offered", F.expr(f"{WRITABLE} and drained is null")).select(
        *EPOCH,
        "topic",
        "at_ms",
        "offered",
        F.expr("bigint(if(offered, greatest(write_queues, 0), 0)) as queues"),
    )
    return offers.repartition(partitions_of(offers), "namespace", "topic")


def _clusters(up: DataFrame, shown: DataFrame) -> DataFrame:
    """As `_even`."""
    sums = shown.groupBy(*EPOCH, "at_ms").agg(
        F.sum("queues").alias("queues"), F.count(F.when(F.col("offered"), F.col("topic"))).alias("topics")
    )
    each = up.join(sums, [*EPOCH, "at_ms"], "left").fillna(0, ["queues", "topics"])
    by_cluster = each.select("namespace", "cluster", "at_ms", "queues", "topics").repartition(
        "namespace", "cluster"
    )
    return _even(by_cluster, "cluster", "queues", "topics")


def _even(rows: DataFrame, kind: str, *amounts: str) -> DataFrame:
    """Return by namespace, `unit` and `at_ms` over how many `brokers` each amount lies, and how unevenly.

    A row is one broker's, and those of a unit are in one partition."""
    ratios = [f"{amount}_{ratio}" for amount in amounts for ratio in ("max_to_mean", "gini")]
    schema = pa.schema(
        {
            **dict.fromkeys(("namespace", kind), pa.string()),
            **dict.fromkeys(("at_ms", "brokers"), pa.int64()),
            **dict.fromkeys(ratios, pa.float64()),
        }
    )
    computed = rows.mapInArrow(partial(_evenness, schema, kind, amounts), from_arrow_schema(schema))
    return computed.withColumn("unit", unit(kind, kind)).drop(kind)


def _evenness(
    schema: pa.Schema, kind: str, amounts: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    rows = table_of(batches)
    if rows is None:
        return
    units, names = numbered(rows, "namespace", kind)
    times, time = np.unique(rows["at_ms"].to_numpy(), return_inverse=True)
    spreads = [evenness(units * len(times) + time, rows[amount].to_numpy()) for amount in amounts]
    group, at = np.divmod(spreads[0].group, len(times))
    ratios = [pa.array(ratio, from_pandas=True) for of_amount in spreads for ratio in of_amount[2:]]
    columns = [
        *names.take(pa.array(group)).columns,
        pa.array(times[at]),
        pa.array(spreads[0].members),
        *ratios,
    ]
    yield from pa.table(columns, schema).to_batches()
