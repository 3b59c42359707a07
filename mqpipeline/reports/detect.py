"""How long the death of a member goes unnoticed: from its last sign of life to leaving the routes."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqpipeline.reports.catalogue import DETECT
from mqpipeline.reports.rows import as_report, each_window, happened
from mqpipeline.reports.shape import MEMBER, WINDOW, unit
from mqpipeline.windows import LATE_MS, Window

HEARTBEAT_MS = 30_000
TIMEOUT_MS = 120_000
CLUSTER_WINDOW = ("namespace", "cluster", *WINDOW)
DEATHS = ("expired", "lost", "closed")


def detect(
    sessions: DataFrame,
    registrations: DataFrame,
    heartbeats: DataFrame,
    windows: Sequence[Window],
    as_of: int,
    late_ms: int = LATE_MS,
    heartbeat_ms: int = HEARTBEAT_MS,
) -> DataFrame:
    """Return DETECT of clusters from BROKER_SESSIONS, `registrations` (entries of kinds `broker_registered` and
    `broker_updated`, for the timeout that a member named) and HEARTBEATS.

    Of a lapse, last_seen to effective: an upper bound, for the member may have died up to `heartbeat_ms` later, which
    the lower bound takes off. Of a closed connection, closing to record. `censored`, in windows that end at `as_of`
    and of namespaces whose heartbeats were kept within it: open sessions silent for longer than their timeout."""
    ended = happened(sessions.where(F.col("end_cause").isin(*DEATHS)), windows, "end_ms")
    measured = ended.withColumns(_times(heartbeat_ms)).groupBy(*CLUSTER_WINDOW).agg(*_values())
    silent = _silent(
        sessions, registrations, heartbeats, [window for window in windows if window.to_ms == as_of], as_of
    )
    rows = measured.join(silent, [*CLUSTER_WINDOW], "full").fillna(0, ["n", "without_last_seen"])
    return rows.withColumn("unit", unit("cluster", "cluster")).transform(as_report, DETECT, as_of, late_ms)


def _times(heartbeat_ms: int) -> dict[str, Column]:
    lapsed, closed = F.col("end_cause") == "expired", F.col("closed_ms")
    unnoticed = F.col("recorded_ms") - F.coalesce(closed, "last_seen_ms")
    upper = F.when(lapsed, F.col("end_ms") - F.col("last_seen_ms")).otherwise(unnoticed)
    exact = ~lapsed & closed.isNotNull()
    return {
        "upper_ms": upper,
        "lower_ms": F.when(exact, upper).when(upper.isNotNull(), F.greatest(upper - heartbeat_ms, F.lit(0))),
        "delay_ms": F.when(lapsed, F.col("recorded_ms") - F.col("end_ms")),
    }


def _values() -> list[Column]:
    return [
        F.count("upper_ms").alias("n"),
        *(nearest_rank(q, "upper_ms").alias(f"p{q * 100:.0f}_ms") for q in (0.5, 0.95, 0.99)),
        F.max("upper_ms").alias("max_ms"),
        nearest_rank(0.5, "lower_ms").alias("lower_p50_ms"),
        F.count_if(F.col("upper_ms").isNull()).alias("without_last_seen"),
        nearest_rank(0.95, "delay_ms").alias("record_delay_p95_ms"),
        F.max("delay_ms").alias("record_delay_max_ms"),
    ]


def nearest_rank(q: float, column: str) -> Column:
    """The value at place ceil(q n) of the n sorted that are not null; null of none."""
    return F.expr(f"percentile_disc({q}) within group (order by {column})")


def _silent(
    sessions: DataFrame,
    registrations: DataFrame,
    heartbeats: DataFrame,
    windows: Sequence[Window],
    as_of: int,
) -> DataFrame:
    """`censored` of the clusters with open sessions, in each window within which their namespace has heartbeats.

    A member is silent since its last heartbeat, or since it registered; but not from before heartbeats were kept."""
    collected = heartbeats.groupBy("namespace").agg(
        F.min("id_ms").alias("collected_from_ms"), F.max("id_ms").alias("collected_to_ms")
    )
    last_heartbeats = heartbeats.groupBy(*MEMBER).agg(F.max("id_ms").alias("last_heartbeat_ms"))
    known = sessions.where("open").join(F.broadcast(collected), "namespace")
    members = known.join(last_heartbeats, [*MEMBER], "left").join(_timeouts(registrations), [*MEMBER], "left")
    since = F.greatest("start_ms", "collected_from_ms", "last_heartbeat_ms")
    silent = F.lit(as_of) - since > F.coalesce("timeout_ms", F.lit(TIMEOUT_MS))
    rows = each_window(members.withColumn("silent", silent), windows).where("collected_to_ms >= from_ms")
    return rows.groupBy(*CLUSTER_WINDOW).agg(F.count_if("silent").alias("censored"))


def _timeouts(registrations: DataFrame) -> DataFrame:
    """The `timeout_ms` that each member named last."""
    named = registrations.withColumn("timeout_ms", F.expr("try_cast(fields['timeout_ms'] as bigint)"))
    latest = F.max_by("timeout_ms", F.struct("batch", "id_ms", "id_n")).alias("timeout_ms")
    return named.where("timeout_ms is not null").groupBy(*MEMBER).agg(latest)
