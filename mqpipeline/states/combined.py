"""The one state of a unit from many overlapping intervals, by running sums over the instants at which one changes."""

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

UP, DOWN, PLANNED, UNKNOWN = "UP", "DOWN", "PLANNED", "UNKNOWN"
DRAINED, ABSENT = "DRAINED", "ABSENT"


class Rank(NamedTuple):
    """An interval of this kind, where there is none of a higher rank, decides the unit's state."""

    kind: str
    state: str


RANKS = (
    Rank(DRAINED, PLANNED),
    Rank(UP, UP),
    Rank(DOWN, DOWN),
    Rank(UNKNOWN, UNKNOWN),
    Rank(PLANNED, PLANNED),
    Rank(ABSENT, UNKNOWN),
)
"""Highest first. `DRAINED` says PLANNED whatever else there is, `ABSENT` says UNKNOWN where there is nothing else."""


def combined(intervals: DataFrame, unit: Sequence[str]) -> DataFrame:
    """The states of each unit, from intervals of it: its columns, `state` (a kind of `RANKS`), `from_ms`, `to_ms`.

    As many rows are sorted as there are instants at which something begins or ends."""
    steps = intervals.where("from_ms < to_ms").select(
        *unit,
        "state",
        F.expr("inline(array(struct(from_ms as at, 1 as step), struct(to_ms as at, -1 as step)))"),
    )
    instants = steps.groupBy(*unit, "at").agg(*(F.expr(_steps_of(rank.kind)) for rank in RANKS))
    in_order = Over.partitionBy(*unit).orderBy("at")
    changes = instants.where(" or ".join(f"{rank.kind} <> 0" for rank in RANKS))
    stated = changes.selectExpr(*unit, "at", f"{_highest(unit)} as state")
    changes = stated.withColumn("before", F.lag("state").over(in_order)).where("not state <=> before")
    return (
        changes.withColumn("to_ms", F.lead("at").over(in_order))
        .where("state is not null")
        .select(*unit, "state", F.col("at").alias("from_ms"), "to_ms")
    )


def within(intervals: DataFrame, from_ms: int, to_ms: int) -> DataFrame:
    """The part of each interval in [from_ms, to_ms); one without an end goes on."""
    return (
        intervals.withColumn("from_ms", F.greatest("from_ms", F.lit(from_ms)))
        .withColumn("to_ms", F.least("to_ms", F.lit(to_ms)))
        .where("from_ms < to_ms")
    )


def _steps_of(kind: str) -> str:
    return f"sum(if(state = '{kind}', step, 0)) as {kind}"


def _highest(unit: Sequence[str]) -> str:
    """SQL: the state of the highest rank of which there is an interval, null where there is none."""
    so_far = f"over (partition by {', '.join(unit)} order by at)"
    choices = (f"when sum({rank.kind}) {so_far} > 0 then '{rank.state}'" for rank in RANKS)
    return f"case {' '.join(choices)} end"
