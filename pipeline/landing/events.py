"""Entries of the event stream as rows of EVENTS."""

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.schemas import EVENTS

TEXTS = ("kind", "cause", "op", "actor", "peer", "cluster", "broker", "addr")
NUMBERS = {  # column -> field
    **{name: name for name in ("v", "inc", "seq", "epoch", "since_ms", "last_seen_ms", "lease_ms")},
    **{name: name for name in ("effective_ms", "closed_ms", "topics")},
    "broker_id": "id",
}
REQUIRED = ("v", "kind", "inc", "seq")
VERSIONS = (1,)
OF_TOPICS = "kind = 'topics_changed' or (kind = 'checkpoint' and fields['scope'] = 'topics')"
"""Which `rows` are queue data: those of static topics are of another shape."""
READ = (*TEXTS, *NUMBERS.values(), "part", "drained", "rows")
EVENT_COLUMNS = ", ".join(
    (
        "stream string, id_ms bigint, id_n bigint, fields map<string, string>",
        *(f"{name} string" for name in READ),
    )
)


def events(raw: DataFrame) -> DataFrame:
    """Raw (EVENT_COLUMNS) -> EVENTS less `batch`, with `stream` in the place of `namespace`.

    Nothing is left out: what cannot be read is null, and `rejected` says what that was."""
    types = {field.name: field.dataType for field in EVENTS.schema.fields}
    numbers = {name: F.col(field).try_cast(types[name]) for name, field in NUMBERS.items()}
    part = F.coalesce(F.col("part"), F.lit("1/1"))
    numbers["part_i"] = F.substring_index(part, "/", 1).try_cast("int")
    numbers["part_n"] = F.substring_index(part, "/", -1).try_cast("int")
    fields = {name: F.col(field) for name, field in NUMBERS.items()} | {"part_i": part, "part_n": part}
    text = F.when(F.expr(OF_TOPICS), F.col("rows"))
    once = raw.select(
        "*",
        F.struct(*(number.alias(name) for name, number in numbers.items())).alias("read"),
        reduce(or_, (fields[name].isNotNull() & number.isNull() for name, number in numbers.items())).alias(
            "odd"
        ),
        F.when(F.col("drained") == "1", True).when(F.col("drained") == "0", False).alias("was_drained"),
        text.alias("text"),
        _rows(text).alias("parsed"),
    )
    good = F.col("text").isNull() | F.coalesce(_usable(F.col("parsed")), F.lit(False))
    version = F.col("read.v")
    rejected = (
        F.when(version.isNotNull() & ~version.isin(*VERSIONS), "version")
        .when(reduce(or_, (F.col(name).isNull() for name in REQUIRED)), "missing")
        .when(F.col("odd") | (F.col("drained").isNotNull() & F.col("was_drained").isNull()), "number")
        .when(~good, "rows")
    )
    made = {
        "id_n": F.col("id_n").cast("int"),
        **{name: F.col(f"read.{name}") for name in numbers},
        "drained": F.col("was_drained"),
        "rows": F.when(good, F.col("parsed")),
        "rejected": rejected,
    }
    columns = [name for name in EVENTS.schema.names if name not in ("namespace", "batch")]
    return once.select("stream", *(made.get(name, F.col(name)).alias(name) for name in columns))


def _rows(text: Column) -> Column:
    """`[[broker, before, after, [topic, …]], …]`; the inner list comes as text, for its place is another type's."""
    return F.transform(
        F.from_json(text, "array<array<string>>"),
        lambda row: F.when(
            F.size(row) == 4,
            F.struct(
                F.get(row, F.lit(0)).alias("broker"),
                F.get(row, F.lit(1)).alias("before"),
                F.get(row, F.lit(2)).alias("after"),
                F.from_json(F.get(row, F.lit(3)), "array<string>").alias("topics"),
            ),
        ),
    )


def _usable(rows: Column) -> Column:
    return F.forall(
        rows,
        lambda row: F.coalesce(
            row["broker"].isNotNull()
            & row["before"].isNotNull()
            & row["after"].isNotNull()
            & ~F.exists(row["topics"], lambda topic: topic.isNull()),
            F.lit(False),
        ),
    )
