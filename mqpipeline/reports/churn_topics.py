"""How much changes of each topic."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqpipeline.codes import numbered, together
from mqpipeline.partitions import partitions_of, table_of
from mqpipeline.reports.catalogue import CHURN_TOPICS
from mqpipeline.reports.held import BrokerChanges, Held, Named
from mqpipeline.reports.held import changes as changes_by_topic
from mqpipeline.reports.operations import OPERATION, changes, entries
from mqpipeline.reports.rows import as_report
from mqpipeline.reports.shape import WINDOW, unit
from mqpipeline.windows import LATE_MS, Window, table

BROKER = ("namespace", "inc", "broker")
EVER = (1 << 63) - 1
SPAN = ("from_ms", "to_ms")
TOPIC = ("namespace", "topic")
OPERATIONS = "array<struct<at_ms: bigint, count: bigint>>"
COUNTED = "namespace string, topic string, window string, from_ms bigint, to_ms bigint, changes bigint"


def churn_topics(
    events: DataFrame,
    route_versions: DataFrame,
    windows: Sequence[Window],
    as_of: int,
    late_ms: int = LATE_MS,
) -> DataFrame:
    """CHURN_TOPICS: of each topic the changes that name it or a broker holding it at the time, each once, from
    clean events and ROUTE_VERSIONS."""
    operation_entries = entries(events)
    partitions = partitions_of(events)
    place = F.pmod(F.xxhash64("namespace", "topic"), F.lit(partitions)).cast("int").alias("place")
    everywhere = F.explode(F.sequence(F.lit(0), F.lit(partitions - 1))).alias("place")
    none = (
        F.array().cast(OPERATIONS).alias("operations")
    )  # null would take Spark time that grows with the square of the rows
    held = route_versions.select(
        place, *BROKER, "topic", "from_ms", F.coalesce("to_ms", F.lit(EVER)).alias("to_ms"), none
    )
    named = _naming(operation_entries).select(
        place, "namespace", "topic", F.col("operation_ms").alias("at_ms"), none
    )
    operations = _of_brokers(operation_entries).select(everywhere, "*")
    rows = reduce(
        lambda some, more: some.unionByName(more, allowMissingColumns=True), (held, named, operations)
    )
    counted = rows.repartitionById(partitions, "place").mapInArrow(partial(_counted, tuple(windows)), COUNTED)
    return counted.withColumn("unit", unit("topic", "topic")).transform(
        as_report, CHURN_TOPICS, as_of, late_ms
    )


def _counted(windows: Sequence[Window], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of one partition: what was held, names of topics, and brokers with `operations` -> COUNTED."""
    rows = table_of(batches)
    if rows is None:
        return
    broker, listed = together(*(rows[name] for name in BROKER)), rows["operations"]
    many = pc.list_value_length(listed).to_numpy()
    flat = pc.list_flatten(listed)
    of_operations = (pc.struct_field(flat, name).to_numpy() for name in ("at_ms", "count"))
    of_topics = np.flatnonzero(many == 0)
    topic, names = numbered(rows.select([*TOPIC]).take(of_topics), *TOPIC)
    is_held = rows["to_ms"].take(of_topics).is_valid().to_numpy()
    held, named = of_topics[is_held], of_topics[~is_held]
    counts = changes_by_topic(
        BrokerChanges(np.repeat(broker, many), *of_operations),
        Held(topic[is_held], broker[held], *(rows[name].take(held).to_numpy() for name in SPAN)),
        Named(topic[~is_held], rows["at_ms"].take(named).to_numpy()),
        windows,
    )
    columns = table(windows)
    for some in counts:
        batch = [*names.take(some.topic).columns, *columns.take(some.window).columns, some.changes]
        yield from pa.table(batch, [*TOPIC, *WINDOW, "changes"]).to_batches()


def _naming(entries: DataFrame) -> DataFrame:
    """`namespace`, `operation_ms`, `topic` of the operations that name a topic, but for operations on the whole of a
    broker that held the topic then: those count by the holding."""
    rows = F.expr(
        """filter(rows, x -> not whole or (id_ms = operation_ms and x.after = '')
            or (id_ms > operation_ms and x.before = ''))"""
    )
    topics = F.concat(
        F.coalesce(F.flatten(F.transform(rows, lambda row: row["topics"])), F.array()),
        F.when(~F.col("whole") & F.col("named").isNotNull(), F.col("named")).otherwise(F.array()),
    )
    each = entries.select(*OPERATION, "operation_ms", F.explode(topics).alias("topic")).where(
        "topic is not null"
    )
    return each.groupBy(*OPERATION, "topic").agg(F.min("operation_ms").alias("operation_ms"))


def _of_brokers(entries: DataFrame) -> DataFrame:
    """Operations on the whole of a broker: BROKER and `operations`, `at_ms` and `count` (how many then) of each."""
    operations = (
        entries.where("whole")
        .groupBy(*OPERATION)
        .agg(F.min("operation_ms").alias("at_ms"), changes().alias("count"))
    )
    at_once = operations.groupBy(*BROKER, "at_ms").agg(F.sum("count").alias("count"))
    return at_once.groupBy(*BROKER).agg(F.collect_list(F.struct("at_ms", "count")).alias("operations"))
