"""How much of the time clusters, brokers and topics were there while they should have been."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqpipeline.reports.catalogue import AVAILABILITY
from mqpipeline.reports.rows import as_report
from mqpipeline.reports.shape import WINDOW, unit
from mqpipeline.reports.worst import worst
from mqpipeline.states.brokers import BROKER
from mqpipeline.states.topics import topic_time_in
from mqpipeline.windows import LATE_MS, Window, time_in

CLUSTER = ("namespace", "cluster")
TOTALS = ("up_ms", "down_ms", "planned_ms", "unknown_ms", "outages")
VALUES = {
    "availability": "try_divide(up_ms, up_ms + down_ms)",
    "mtbf_ms": "try_divide(up_ms, outages)",
    "mttr_ms": "try_divide(down_ms, outages)",
}


def availability(
    brokers: DataFrame,
    writable: DataFrame,
    route_versions: DataFrame,
    windows: Sequence[Window],
    as_of: int,
    late_ms: int = LATE_MS,
) -> DataFrame:
    """Return AVAILABILITY of the windows, from the states of brokers (`broker_states`, `writable_states`) and
    ROUTE_VERSIONS. A unit has a row in each window in which it has a state."""
    of_brokers = time_in(brokers, windows, BROKER)
    lowest = worst(brokers, windows)
    each = of_brokers.join(lowest, [*BROKER, *WINDOW], "left").withColumn(
        "unit", unit("broker", "cluster", "broker")
    )
    of_clusters = cluster_time(of_brokers).withColumn("unit", unit("cluster", "cluster"))
    of_topics = topic_time_in(route_versions, writable, windows).withColumn("unit", unit("topic", "topic"))
    rows = each.unionByName(of_clusters, allowMissingColumns=True).unionByName(
        of_topics, allowMissingColumns=True
    )
    values = rows.withColumns({name: F.expr(sql) for name, sql in VALUES.items()})
    return values.transform(as_report, AVAILABILITY, as_of, late_ms)


def cluster_time(of_brokers: DataFrame) -> DataFrame:
    """The time of each cluster: the sums of its brokers' (`time_in`)."""
    return of_brokers.groupBy(*CLUSTER, *WINDOW).agg(*(F.sum(total).alias(total) for total in TOTALS))
