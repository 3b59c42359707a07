"""Which slots flap: a score that each death of a member raises and that halves every fifteen minutes."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqpipeline.reports.catalogue import FLAP
from mqpipeline.reports.rows import as_report, each_window
from mqpipeline.reports.shape import unit
from mqpipeline.states.slots import SLOT
from mqpipeline.windows import LATE_MS, Window

DEATH, CHANGE = 1000, 500
"""What is added to the score."""
CAP = 12_000
HALVES_MS = 900_000
DIGITS = 6
"""Decimal digits of a score: what is less than a day back no longer shows in it."""
FLAPPING_OVER, CALM_UNDER = 2000, 750
NOTHING_YET = """named_struct('score', 0d, 'at_ms', 0L, 'since', cast(null as bigint), 'episodes',
    cast(array() as array<bigint>),
    'samples', cast(array() as array<struct<at_ms bigint, score double, since bigint>>))"""


def flap(
    sessions: DataFrame, events: DataFrame, windows: Sequence[Window], as_of: int, late_ms: int = LATE_MS
) -> DataFrame:
    """Return FLAP of slots from BROKER_SESSIONS and clean events.

    p becomes min(CAP, p 2^(-dt / HALVES_MS) + weight) at each blow; a slot is flapping once p is over FLAPPING_OVER and
    until it is under CALM_UNDER. A slot of score 0 that did not begin to flap in the window has no row."""
    scores = blows(sessions, events).transform(_scores, sorted({window.to_ms for window in windows}))
    rows = each_window(scores, windows).withColumns(
        {
            "sample": F.expr("filter(samples, x -> x.at_ms = to_ms)[0]"),
            "episodes": F.expr("size(filter(episodes, x -> x >= from_ms and x < to_ms))"),
        }
    )
    named = rows.select(
        "*",
        F.round("sample.score", DIGITS).alias("score"),
        F.col("sample.since").alias("flapping_since_ms"),
        F.expr("sample.since is not null as flapping"),
        unit("slot", *SLOT[1:]).alias("unit"),
    )
    return named.where("score > 0 or episodes > 0").transform(as_report, FLAP, as_of, late_ms)


def blows(sessions: DataFrame, events: DataFrame) -> DataFrame:
    """What raises the score of a slot: `at_ms`, when answers changed, and `weight`.

    Of slot 0 also changes of stored permissions of its broker, and of the drain that a wipe or restore was made
    into; one for each operation."""
    entered = sessions.where("start_cause in ('takeover', 'switch')").select(
        *SLOT, F.col("start_ms").alias("at_ms"), F.lit(CHANGE).alias("weight")
    )
    died = sessions.where("end_cause in ('expired', 'lost', 'closed')").select(
        *SLOT, F.col("end_ms").alias("at_ms"), F.lit(DEATH).alias("weight")
    )
    masters = sessions.where("broker_id = 0").select(*SLOT).distinct()
    permitted = _permissions(events).join(masters, ["namespace", "broker"])
    return died.unionByName(entered).unionByName(
        permitted.select(*SLOT, "at_ms", F.lit(CHANGE).alias("weight"))
    )


def _permissions(events: DataFrame) -> DataFrame:
    """`namespace`, `broker`, `at_ms` of each operation that changed permissions of a broker."""
    changed = """array_distinct(transform(filter(rows, x -> x.before <> '' and x.after <> ''
        and split_part(x.before, ',', 3) <> split_part(x.after, ',', 3)), x -> x.broker))"""
    drained = F.when(F.expr("kind = 'drain_changed' and cause in ('wipe', 'restore')"), F.array("broker"))
    brokers = F.when(F.col("kind") == "topics_changed", F.expr(changed)).otherwise(drained)
    operation = F.coalesce("op", F.concat("id_ms", F.lit("-"), "id_n"))
    each = events.select(
        "namespace", "inc", operation.alias("operation"), "id_ms", F.explode(brokers).alias("broker")
    )
    return each.groupBy("namespace", "inc", "operation", "broker").agg(F.min("id_ms").alias("at_ms"))


def _scores(blows: DataFrame, at: Sequence[int]) -> DataFrame:
    """Return of each slot `samples`: the score at these times and since when it is flapping; and
    `episodes`: when it began to.

    The times stand among the blows, weightless and before those of their own millisecond."""
    asked = F.array(
        *(F.struct(F.lit(ms).cast("bigint").alias("at_ms"), F.lit(0).alias("weight")) for ms in at)
    )
    ordered = F.sort_array(F.concat(F.collect_list(F.struct("at_ms", "weight")), asked))
    listed = blows.groupBy(*SLOT).agg(ordered.alias("blows"))
    folded = F.aggregate("blows", F.expr(NOTHING_YET), _after)
    return listed.select(*SLOT, folded.alias("fold")).select(*SLOT, "fold.samples", "fold.episodes")


def _after(fold: Column, blow: Column) -> Column:
    faded = fold["score"] * F.pow(F.lit(2.0), (fold["at_ms"] - blow["at_ms"]) / HALVES_MS)
    score = F.least(F.lit(float(CAP)), faded + blow["weight"])
    still = F.when(faded >= CALM_UNDER, fold["since"])
    begins = still.isNull() & (score > FLAPPING_OVER)
    since = F.when(begins, blow["at_ms"]).otherwise(still)
    sample = F.struct(blow["at_ms"].alias("at_ms"), score.alias("score"), since.alias("since"))
    return F.struct(
        score.alias("score"),
        blow["at_ms"].alias("at_ms"),
        since.alias("since"),
        F.when(begins, F.array_append(fold["episodes"], blow["at_ms"]))
        .otherwise(fold["episodes"])
        .alias("episodes"),
        F.when(blow["weight"] == 0, F.array_append(fold["samples"], sample))
        .otherwise(fold["samples"])
        .alias("samples"),
    )
