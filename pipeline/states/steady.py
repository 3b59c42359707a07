"""Most of the time one broker or another of a topic just stays UP; what the others do then need not be looked at.

Time is cut into equal slices, the bits of a mask. A unit is steady in a slice that one UP piece of it covers.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.states.combined import UP

SLICES = 60


def thinned(pieces: DataFrame, unit: Sequence[str], from_ms: int, to_ms: int) -> DataFrame:
    """Pieces in [from_ms, to_ms) that make the same states of each unit (`combined`), mostly far fewer: one UP piece
    for each run of steady slices, and those of `pieces` that reach out of them.

    Reads `pieces` twice and shuffles none of them: only a mask for each unit."""
    width = -(-(to_ms - from_ms) // SLICES)
    begins, ends = f"int((from_ms - {from_ms}) div {width})", f"int((to_ms - {from_ms}) div {width})"
    begins_after = f"int((from_ms - {from_ms} + {width - 1}) div {width})"
    ends_after = f"int((to_ms - {from_ms} + {width - 1}) div {width})"
    covered, touched = F.expr(f"bit_or({_bits(begins_after, ends)})"), _bits(begins, ends_after)
    steady = pieces.where(f"state = '{UP}'").groupBy(*unit).agg(covered.alias("steady")).where("steady <> 0")
    restless = pieces.join(F.broadcast(steady), list(unit), "left").where(
        f"({touched} & ~ coalesce(steady, 0)) <> 0"
    )
    edges = F.expr(
        f"filter(sequence(0, {SLICES}), slice -> getbit(steady ^ shiftleft(steady, 1), slice) = 1)"
    )
    runs = F.expr(
        f"""inline(transform(sequence(0, size(edges) - 2, 2), at -> struct(
        {from_ms} + edges[at] * {width}L as from_ms, {from_ms} + edges[at + 1] * {width}L as to_ms)))"""
    )
    covers = steady.withColumn("edges", edges).select(*unit, F.lit(UP).alias("state"), runs)
    return covers.unionByName(restless.select(*covers.columns))


def _bits(first: str, end: str) -> str:
    """SQL of a mask of the slices from `first` up to `end`."""
    return f"if({first} < {end}, shiftleft(1L, {end}) - shiftleft(1L, {first}), 0L)"
