"""What the rows of all reports share: how units are named, and what judges a window."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from mqpipeline.states.slots import SLOT

WINDOW = ("window", "from_ms", "to_ms")
ROW = ("namespace", *WINDOW, "unit")
"""What identifies a row of a report."""
MEMBER = (*SLOT, "addr")


def unit(kind: str, *names: str) -> Column:
    """As reports name it: `broker:<cluster>:<broker>`, of the columns that name it."""
    return F.concat_ws(":", F.lit(kind), *names)


def clusters_and_brokers() -> Column:
    """Return the unit of a row's cluster and that of its broker, exploded: each row counts for both."""
    return F.explode(F.array(unit("cluster", "cluster"), unit("broker", "cluster", "broker")))


def judged_at(as_of: int, late_ms: int) -> dict[str, Column]:
    """Columns `as_of` and `provisional`, by the window's `to_ms`: an expiry in it may be recorded `late_ms` later."""
    return {"as_of": F.lit(as_of).cast("bigint"), "provisional": F.lit(as_of) < F.col("to_ms") + late_ms}
