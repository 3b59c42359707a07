"""Entries of the event stream as rows of EVENTS.

The source makes columns of fields, numbers and lists among them; what does not fit stays where all fields are that
have no column.
"""

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.schemas import EVENTS, ROWS

TEXTS = ("kind", "cause", "op", "actor", "peer", "cluster", "broker", "addr")
NUMBERS = {  # column -> field
    **{name: name for name in ("v", "inc", "seq", "epoch", "since_ms", "last_seen_ms", "lease_ms")},
    **{name: name for name in ("effective_ms", "closed_ms", "topics")},
    "broker_id": "id",
}
INTS = ("v", "topics")
REQUIRED = ("v", "kind", "inc", "seq")
VERSIONS = (1,)
OF_TOPICS = "kind = 'topics_changed' or (kind = 'checkpoint' and others['scope'] = 'topics')"
"""Which `rows` are queue data: those of static topics are of another shape."""
ODD = "map_filter(map('part', part, 'drained', drained), (name, value) -> value is not null)"
EVENT_COLUMNS = ", ".join(
    (
        "stream string, id_ms bigint, id_n bigint, others map<string, string>",
        *(f"{name} string" for name in (*TEXTS, "part", "drained")),
        *(f"{field} {'int' if name in INTS else 'bigint'}" for name, field in NUMBERS.items()),
        f"rows {ROWS}",
    )
)


def events(raw: DataFrame) -> DataFrame:
    """Raw (EVENT_COLUMNS) -> EVENTS less `batch`, with `stream` in the place of `namespace`.

    Nothing is left out: what cannot be read is null, `fields` has it as it was, and `rejected` says what it is."""
    part, drained = F.col("part"), F.col("drained")
    read = raw.select(
        "*",
        F.when(part.isNull(), 1).otherwise(F.substring_index(part, "/", 1).try_cast("int")).alias("part_i"),
        F.when(part.isNull(), 1).otherwise(F.substring_index(part, "/", -1).try_cast("int")).alias("part_n"),
        F.when(drained == "1", True).when(drained == "0", False).alias("was_drained"),
    )
    odd = F.expr("part_i is null or part_n is null or (drained is not null and was_drained is null)")
    made = {
        "id_n": F.col("id_n").cast("int"),
        **{name: F.col(field) for name, field in NUMBERS.items()},
        "drained": F.col("was_drained"),
        "fields": F.when(odd, F.map_concat("others", F.expr(ODD))).otherwise(F.col("others")),
        "rejected": _rejected(odd),
    }
    columns = [name for name in EVENTS.schema.names if name not in ("namespace", "batch")]
    return read.select("stream", *(made.get(name, F.col(name)).alias(name) for name in columns))


def _rejected(odd: Column) -> Column:
    """What is in no column because it is not what it should be is among the others."""
    version, others = F.col("v"), F.map_keys("others")
    unread = F.arrays_overlap(others, F.array(*map(F.lit, NUMBERS.values())))
    return (
        F.when(version.isNotNull() & ~version.isin(*VERSIONS), "version")
        .when(reduce(or_, (F.col(name).isNull() for name in REQUIRED)), "missing")
        .when(odd | unread, "number")
        .when(F.array_contains(others, "rows") & F.expr(OF_TOPICS), "rows")
    )
