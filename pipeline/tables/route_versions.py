"""Versions of routes: what is stored of a topic on a broker, from one change of it to the next."""

import sys

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.schemas import ID, ROUTE_VERSIONS
from pipeline.tables import rounds
from pipeline.tables.islands import islands

STREAM = ("namespace", "inc")
PAIR = (*STREAM, "topic", "broker")
QUEUES = ("read_queues", "write_queues", "perm", "sys_flag")  # in the order of the stored text
ABSENT = ""


def route_versions(
    clean: DataFrame, carried: DataFrame | None = None, brokers: DataFrame | None = None
) -> DataFrame:
    """ROUTE_VERSIONS, of clean events. With `carried` and `brokers`, the open rows of the run before of this table and
    of BROKER_VERSIONS, `clean` are the events since; the result then has the rows that are open now, and those that
    have ended since."""
    epochs = F.broadcast(_epochs(clean, brokers))
    rows = _dated(_told(clean).unionByName(_restated(clean)), epochs)
    if carried is not None:
        rows = rows.unionByName(_carried(carried))
    last = islands(
        _observed(rows), PAIR, ("seq", "place"), _restates, compared=("epoch", "after"), start="this"
    )
    return _versions(last.where(F.col("this.after") != ABSENT).transform(_limited, epochs))


def _versions(last: DataFrame) -> DataFrame:
    """Rows of the table, of the last observation of each version."""
    data = F.split("this.after", ",")
    numbers = [data[i].cast("int").alias(name) for i, name in enumerate(QUEUES)]
    begun = [F.col("start.id.ms").alias("from_ms")]
    begun += [F.col(f"start.{name}").alias(f"from_{name}") for name in ("id", "cause", "actor", "op")]
    told = last.select(*PAIR, "this.epoch", *numbers, *begun, _end().alias("end"))
    ended = told.select("*", "end.*").drop("end")
    within_one_entry = F.coalesce(F.col("to_id") == F.col("from_id"), F.lit(False))
    return ended.where(~within_one_entry)[[*ROUTE_VERSIONS.schema.fieldNames()]]


def _restates(one: Column, then: Column) -> Column:
    """The next observation says that the same still holds."""
    same = one["epoch"].eqNullSafe(then["epoch"]) & (one["after"] == then["after"])
    return then["restates"] & same & (one["after"] != ABSENT)


def _end() -> Column:
    """What ended a version: the next change of its pair, unless a new epoch or a hole came before that."""
    this, behind = F.col("this"), F.col("next")
    by_change = F.struct(
        behind["id"]["ms"].alias("to_ms"),
        behind["id"].alias("to_id"),
        behind["cause"].alias("to_cause"),
        behind["actor"].alias("to_actor"),
    )
    whole = this["segment"] == behind["segment"]
    starts_from_it = ~behind["restates"] & (behind["before"] == this["after"])
    met = this["epoch"].eqNullSafe(behind["epoch"]) & (whole | starts_from_it)
    return (
        F.when(behind.isNotNull() & met, by_change)
        .when(F.col("limit.to_cause") == "epoch", F.col("limit"))
        .when(behind.isNotNull() & whole, by_change)
        .otherwise(F.col("limit"))
    )


def _observed(pairs: DataFrame) -> DataFrame:
    """As `islands` takes them, a row for each topic. `cut` is where history breaks off."""
    cut = F.when(F.col("until_cause").isNotNull(), F.struct("until_ms", "until_cause"))
    this = F.struct("after", "before", "epoch", "segment", "restates", "id", "cause", "actor", "op")
    return pairs.select(
        *STREAM,
        "broker",
        F.explode("topics").alias("topic"),
        "seq",
        "place",
        this.alias("this"),
        cut.alias("cut"),
    )


def _limited(last: DataFrame, epochs: DataFrame) -> DataFrame:
    """With `limit`: how the version ends if nobody changes it. It is the same for all of an epoch, so it need not be
    there while rows are sorted."""
    ending, cut = F.col("ending"), F.col("cut")
    limit = F.when(
        ending["segment"] == F.col("this.segment"),
        F.struct(
            ending["id"]["ms"].alias("to_ms"),
            ending["id"].alias("to_id"),
            F.lit("epoch").alias("to_cause"),
            ending["actor"].alias("to_actor"),
        ),
    ).when(
        cut.isNotNull(),
        F.struct(
            cut["until_ms"].alias("to_ms"),
            F.lit(None).cast(ID).alias("to_id"),
            cut["until_cause"].alias("to_cause"),
            F.lit(None).cast("string").alias("to_actor"),
        ),
    )
    known = epochs.select(*STREAM, "broker", "epoch", "ending")
    found = last.withColumn("epoch", F.col("this.epoch")).join(known, [*STREAM, "broker", "epoch"], "left")
    return found.withColumn("limit", limit)


def _told(clean: DataFrame) -> DataFrame:
    return _rows(clean.where(F.col("kind") == "topics_changed"), restates=False)


def _restated(clean: DataFrame) -> DataFrame:
    return _rows(rounds.topics(clean), restates=True)


def _rows(entries: DataFrame, *, restates: bool) -> DataFrame:
    """A row for each of an entry; `epoch` where the entry names the broker."""
    named = entries.withColumnRenamed("broker", "named").select(
        "*", F.posexplode("rows").alias("place", "row")
    )
    return named.select(
        *STREAM,
        "seq",
        "id",
        "segment",
        "span.first_seq",
        "span.until_ms",
        "span.until_cause",
        (F.lit("checkpoint") if restates else F.col("cause")).alias("cause"),
        "actor",
        "op",
        F.when(F.col("named") == F.col("row.broker"), F.col("epoch")).alias("epoch"),
        F.lit(restates).alias("restates"),
        "place",
        "row.*",
    )


def _carried(rows: DataFrame) -> DataFrame:
    """Open rows of the run before, as what was observed before all else."""
    nothing, none = F.lit(None).cast("string"), F.lit(0).cast("bigint")
    return rows.where(F.col("to_ms").isNull()).select(
        *STREAM,
        none.alias("seq"),
        F.col("from_id").alias("id"),
        none.alias("segment"),
        none.alias("first_seq"),
        F.lit(None).cast("bigint").alias("until_ms"),
        nothing.alias("until_cause"),
        *(F.col(f"from_{name}").alias(name) for name in ("cause", "actor", "op")),
        "epoch",
        F.lit(False).alias("restates"),
        F.lit(0).alias("place"),
        "broker",
        nothing.alias("before"),
        F.concat_ws(",", *QUEUES).alias("after"),
        F.array("topic").alias("topics"),
    )


def _dated(rows: DataFrame, epochs: DataFrame) -> DataFrame:
    """With the `epoch` that the broker had, where an entry on several brokers does not say it."""
    asked = F.when(F.col("epoch").isNull(), F.col("broker"))
    held = epochs.select(
        *STREAM, F.col("broker").alias("asked"), F.col("epoch").alias("held"), "from_seq", "to_seq"
    )
    then = F.col("row.seq").between(F.col("held.from_seq"), F.col("held.to_seq"))
    same = [F.col(f"row.{name}") == F.col(f"held.{name}") for name in (*STREAM, "asked")]
    found = rows.withColumn("asked", asked).alias("row").join(held.alias("held"), [*same, then], "left")
    return found.select("row.*", "held.held").withColumn("epoch", F.coalesce("epoch", "held"))[
        [*rows.columns]
    ]


def _epochs(clean: DataFrame, brokers: DataFrame | None) -> DataFrame:
    """The epochs of each broker: `epoch`, held by entries from `from_seq` to `to_seq`, and `ending`: `id`, `segment`
    and `actor` of the first entry of the next one, null where there is none.

    One that was not seen to begin is taken to go back as far as history is whole."""
    told = clean.where(F.col("kind").isin("broker_registered", "broker_removed", "checkpoint"))
    first = F.when(F.col("cause") == "first", F.col("seq")).otherwise(F.col("span.first_seq"))
    seen = told.where(F.col("broker").isNotNull() & F.col("epoch").isNotNull()).select(
        *STREAM, "broker", "epoch", "seq", first.alias("from_seq"), "id", "segment", "actor"
    )
    if brokers is not None:
        none = F.lit(0).cast("bigint")
        nobody = F.lit(None).cast("string").alias("actor")
        carried = brokers.where(F.col("to_ms").isNull() & F.col("epoch").isNotNull()).select(
            *STREAM,
            "broker",
            "epoch",
            none.alias("seq"),
            none.alias("from_seq"),
            F.col("from_id").alias("id"),
            none.alias("segment"),
            nobody,
        )
        seen = seen.unionByName(carried)
    in_order = Window.partitionBy(*STREAM, "broker").orderBy("seq")
    another = ~F.col("epoch").eqNullSafe(F.lag("epoch").over(in_order))
    starts = seen.withColumn("another", another).where("another")
    return starts.select(
        *STREAM,
        "broker",
        "epoch",
        "from_seq",
        F.coalesce(F.lead("from_seq").over(in_order) - 1, F.lit(sys.maxsize)).alias("to_seq"),
        F.lead(F.struct("id", "segment", "actor")).over(in_order).alias("ending"),
    )
