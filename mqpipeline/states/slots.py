"""A slot's states: UP while a member is in it; after a session by the cause of its end."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from mqpipeline.states.combined import DOWN, PLANNED, UNKNOWN, UP, combined, within

SLOT = ("namespace", "cluster", "broker", "broker_id")
RETIRE_AFTER_MS = 7 * 24 * 3_600_000
UNRECORDED_AT_MOST_MS = 60_000
"""Two heartbeat intervals: a live broker has been recorded again by then."""

FAILED = ("expired", "lost", "closed")
INTENDED = ("unregistered", "evicted", "switched")
SILENT = "silent"
UNRECORDED = ("incarnation", "gap")
"""How a session ends where the history does: the member may well have stayed."""


def known_until(sessions: DataFrame, ends: Mapping[str, int]) -> DataFrame:
    """Sessions, of which those that go on end where nothing more is known of their namespace: the member may well have
    stayed. `ends` are these times by namespace."""
    if not ends:
        return sessions
    end = F.create_map([F.lit(text) for pair in ends.items() for text in pair])[F.col("namespace")]
    goes_on = F.col("end_ms").isNull() & end.isNotNull()
    return sessions.withColumns(
        {
            "end_ms": F.when(goes_on, end).otherwise(F.col("end_ms")),
            "end_cause": F.when(goes_on, SILENT).otherwise(F.col("end_cause")),
        }
    )


def slot_states(
    sessions: DataFrame,
    as_of: int,
    retire_after_ms: int = RETIRE_AFTER_MS,
    unrecorded_ms: int = UNRECORDED_AT_MOST_MS,
) -> DataFrame:
    """The states of each slot up to `as_of`, of BROKER_SESSIONS.

    No interval covers a slot before its first session, nor from `retire_after_ms` after the end of its last one unless
    it left on purpose. Other causes (`import`, `mirror`, `silent`) leave UNKNOWN."""
    in_order = Over.partitionBy(*SLOT).orderBy("start_ms", "inc", "start_id")
    begun = sessions.where(F.col("start_ms") < as_of)
    left = F.coalesce("end_ms", F.lit(as_of))
    back = F.coalesce(F.lead("start_ms").over(in_order), F.lit(as_of))
    lasting = begun.select(*SLOT, "start_ms", "end_cause", "drained", left.alias("left"), back.alias("back"))
    intervals = lasting.select(*SLOT, F.inline(_intervals(retire_after_ms, unrecorded_ms)))
    return within(intervals, 0, as_of).transform(combined, SLOT)


def _intervals(retire_after_ms: int, unrecorded_ms: int) -> Column:
    """The session and the time until the next, as intervals; they may be empty."""
    left, back = F.col("left"), F.col("back")
    retired = F.least(back, left + retire_after_ms)
    known_until = F.least(back, left + unrecorded_ms)
    caused = F.col("end_cause")
    intended = caused.isin(*INTENDED) | (caused.isin(*FAILED) & F.coalesce("drained", F.lit(False)))
    up = _interval(UP, F.col("start_ms"), left)
    return (
        F.when(caused.isNull(), F.array(up))
        .when(intended, F.array(up, _interval(PLANNED, left, back)))
        .when(caused.isin(*FAILED), F.array(up, _interval(DOWN, left, retired)))
        .when(
            caused.isin(*UNRECORDED),
            F.array(up, _interval(UNKNOWN, left, known_until), _interval(DOWN, known_until, retired)),
        )
        .otherwise(F.array(up, _interval(UNKNOWN, left, retired)))
    )


def _interval(state: str, from_ms: Column, to_ms: Column) -> Column:
    return F.struct(F.lit(state).alias("state"), from_ms.alias("from_ms"), to_ms.alias("to_ms"))
