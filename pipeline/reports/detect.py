"""How long the death of a member goes unnoticed: from its last sign of life to leaving the routes."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.reports.rows import each_window, happened, report
from pipeline.reports.shape import WINDOW, unit
from pipeline.schemas import REPORT_DETECT
from pipeline.windows import LATE_MS, Window

HEARTBEAT_MS = 30_000
TIMEOUT_MS = 120_000
MEMBER = ("namespace", "cluster", "broker", "broker_id", "addr")
ROW = ("namespace", "cluster", *WINDOW)
DEATHS = ("expired", "lost", "closed")


def detect(
    sessions: DataFrame,
    events: DataFrame,
    beats: DataFrame,
    of: Sequence[Window],
    as_of: int,
    late_ms: int = LATE_MS,
    heartbeat_ms: int = HEARTBEAT_MS,
) -> DataFrame:
    """REPORT_DETECT of clusters from BROKER_SESSIONS, clean events (the timeout that a member named) and HEARTBEATS.

    Of a lapse, last_seen to effective: an upper bound, for the member may have died up to `heartbeat_ms` later, which
    the lower bound takes off. Of a closed connection, closing to record. `censored`, in windows that end at `as_of`
    and of namespaces whose beats were kept within it: open sessions silent for longer than their timeout."""
    ended = happened(sessions.where(F.col("end_cause").isin(*DEATHS)), of, "end_ms")
    measured = ended.withColumns(_times(heartbeat_ms)).groupBy(*ROW).agg(*_values())
    silent = _silent(sessions, events, beats, [window for window in of if window.to_ms == as_of], as_of)
    rows = measured.join(silent, [*ROW], "full").fillna(0, ["n", "without_last_seen"])
    return rows.withColumn("unit", unit("cluster", "cluster")).transform(
        report, REPORT_DETECT, as_of, late_ms
    )


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
    sessions: DataFrame, events: DataFrame, beats: DataFrame, of: Sequence[Window], as_of: int
) -> DataFrame:
    """`censored` of the clusters with open sessions, in each window within which their namespace has beats.

    A member is silent since its last beat, or since it registered; but not from before beats were kept."""
    kept = beats.groupBy("namespace").agg(
        F.min("id_ms").alias("kept_from_ms"), F.max("id_ms").alias("kept_to_ms")
    )
    heard = beats.groupBy(*MEMBER).agg(F.max("id_ms").alias("heard_ms"))
    known = sessions.where("open").join(F.broadcast(kept), "namespace")
    told = known.join(heard, [*MEMBER], "left").join(_timeouts(events), [*MEMBER], "left")
    since = F.greatest("start_ms", "kept_from_ms", "heard_ms")
    silent = F.lit(as_of) - since > F.coalesce("timeout_ms", F.lit(TIMEOUT_MS))
    rows = each_window(told.withColumn("silent", silent), of).where("kept_to_ms >= from_ms")
    return rows.groupBy(*ROW).agg(F.count_if("silent").alias("censored"))


def _timeouts(events: DataFrame) -> DataFrame:
    """The `timeout_ms` that each member named last."""
    named = events.where("kind in ('broker_registered', 'broker_updated')").withColumn(
        "timeout_ms", F.expr("try_cast(fields['timeout_ms'] as bigint)")
    )
    latest = F.max_by("timeout_ms", F.struct("inc", "seq")).alias("timeout_ms")
    return named.where("timeout_ms is not null").groupBy(*MEMBER).agg(latest)
