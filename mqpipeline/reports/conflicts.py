"""Conflicting claims of an identity: claims that were judged, and slots that two addresses take from each other."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from mqpipeline.reports.catalogue import CONFLICTS
from mqpipeline.reports.rows import as_report, happened
from mqpipeline.reports.shape import WINDOW, unit
from mqpipeline.states.slots import SLOT
from mqpipeline.windows import LATE_MS, Window

TAKEOVERS = 3
WITHIN_MS = 300_000


def conflicts(
    events: DataFrame, sessions: DataFrame, windows: Sequence[Window], as_of: int, late_ms: int = LATE_MS
) -> DataFrame:
    """Return CONFLICTS of slots from clean events and BROKER_SESSIONS: how often, when last, and what was last.

    `type` is the cause of `conflict_seen`, or `two_addresses`: takeovers of which TAKEOVERS lie within WITHIN_MS, all
    between the same two addresses. `detail` is JSON: `addr` that claimed, `holder`, and the claim's `action`.

    An entry tells of `count` conflicts; one without it, as all of 0.1 are, of one."""
    seen = happened(_claims(events).unionByName(fights(sessions)), windows, "at_ms")
    last = F.max_by("detail", F.struct("at_ms", "id", "detail")).alias("detail")
    rows = seen.groupBy(*SLOT, *WINDOW, "type").agg(
        F.sum("count").alias("count"), F.max("at_ms").alias("last_ms"), last
    )
    named = rows.withColumn("unit", unit("slot", *SLOT[1:], "type"))
    return named.transform(as_report, CONFLICTS, as_of, late_ms)


def _claims(events: DataFrame) -> DataFrame:
    detail = """to_json(struct(addr, from_json(fields['holder'], 'map<string,string>') as holder,
        fields['action'] as action))"""
    return events.where("kind = 'conflict_seen'").select(
        *SLOT,
        F.col("cause").alias("type"),
        F.col("id_ms").alias("at_ms"),
        "id",
        F.expr(detail).alias("detail"),
        F.expr("coalesce(cast(fields['count'] as bigint), 1)").alias("count"),
    )


def fights(sessions: DataFrame) -> DataFrame:
    """The takeovers that are part of a fight of two addresses for a slot, as rows like those of claims.

    Clusters take slots from each other too: the address before is that of the broker's id, whatever its cluster."""
    stays = Over.partitionBy("namespace", "broker", "broker_id").orderBy("start_id", "inc")
    rivals = Over.partitionBy("namespace", "broker", "broker_id", "rivals").orderBy("at_ms", "id")

    takeovers = (
        sessions.withColumn("holder", F.lag("addr").over(stays))
        .where("start_cause = 'takeover' and holder <> addr")
        .select(
            *SLOT,
            F.lit("two_addresses").alias("type"),
            F.col("start_ms").alias("at_ms"),
            F.col("start_id").alias("id"),
            F.sort_array(F.array("addr", "holder")).alias("rivals"),
            F.to_json(F.struct("addr", "holder")).alias("detail"),
            F.lit(1).cast("bigint").alias("count"),
        )
    )
    # the run of TAKEOVERS that ends with each; a takeover is part of a fight if one of those it lies in is short
    ends = F.col("at_ms") - F.lag("at_ms", TAKEOVERS - 1).over(rivals) <= WITHIN_MS
    lies_in = F.max("ends").over(rivals.rowsBetween(0, TAKEOVERS - 1))
    return (
        takeovers.withColumn("ends", ends)
        .withColumn("fight", lies_in)
        .where("fight")
        .drop("rivals", "ends", "fight")
    )
