"""Observations of one thing, in order, cut into islands: stretches in which each confirms the previous one."""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

Follows = Callable[[Column, Column], Column]
PLACE = "place_in_order"
"""A number made of the keys: sorting compares that first, and hardly ever their texts, which begin alike."""


def islands(
    seen: DataFrame,
    keys: Sequence[str],
    order: Sequence[str],
    follows: Follows,
    compared: Sequence[str],
) -> DataFrame:
    """The last observation of each island, in one shuffle by `keys`.

    Of `seen` this needs the structs `this`, what an observation says, and `start`, what an island has for its beginning
    that begins with it. `follows(one, next)`, of two `this`, is whether the next confirms the one (null: no); of the
    one it may look at the fields `compared`. In the rows returned `start` is that of the island, and `next` is `this`
    of the first observation behind it, null behind the last island."""
    in_order = Window.partitionBy(PLACE, *keys).orderBy(*order)
    before, behind = F.col("before"), F.col("next")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        seen.withColumn(PLACE, F.xxhash64(*keys))
        .withColumn("before", F.lag(F.struct(*(f"this.{name}" for name in compared))).over(in_order))
        .withColumn("next", F.lead("this").over(in_order))
        .withColumn("begins", before.isNull() | ~F.coalesce(follows(before, F.col("this")), F.lit(False)))
        .withColumn("start", F.last(F.when(F.col("begins"), F.col("start")), ignorenulls=True).over(so_far))
        .where(behind.isNull() | ~F.coalesce(follows(F.col("this"), behind), F.lit(False)))
        .drop(PLACE, "before", "begins")
    )
