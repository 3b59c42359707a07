"""Versions of brokers: what held of a broker name from one change of it to the next."""

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqpipeline.clean import SPAN
from mqpipeline.schemas import BROKER_VERSIONS, DRAIN
from mqpipeline.tables import checkpoints
from mqpipeline.tables.islands import islands

BROKER = ("namespace", "inc", "broker")
ATTRIBUTES = {
    "cluster": "string",
    "epoch": "bigint",
    "zone": "string",
    "acting": "boolean",
    "drain": "string",
}
NONE = ""
"""No zone, no drain: what an observation says that does not leave it out."""


def broker_versions(clean: DataFrame, carried: DataFrame | None = None) -> DataFrame:
    """BROKER_VERSIONS, of clean events. With `carried`, the open rows of the run before, `clean` are the events since;
    the result then has the rows that are open now, and those that have ended since.

    The death of a broker changes nothing of these: `epoch` and `cluster` are those it had last."""
    seen = _reported(clean).unionByName(_drains(clean)).unionByName(_checkpointed(clean))
    if carried is not None:
        seen = seen.unionByName(_carried(carried))
    versions = islands(_filled(seen), BROKER, ("seq",), _same, (*ATTRIBUTES,))
    plain = versions.select(*BROKER, "start.*", _end_ms().alias("to_ms"))
    return plain.withColumns({"zone": _some("zone"), "drain": F.from_json(_some("drain"), DRAIN)})[
        [*BROKER_VERSIONS.schema.fieldNames()]
    ]


def _same(one: Column, then: Column) -> Column:
    return reduce(and_, (one[name].eqNullSafe(then[name]) for name in ATTRIBUTES))


def _end_ms() -> Column:
    """By the next version; or at the hole before that one, if a checkpoint or a new epoch shows that it was over."""
    this, behind = F.col("this"), F.col("next")
    whole = this["segment"] == behind["segment"]
    changed_then = whole | (~behind["is_checkpoint"] & this["epoch"].eqNullSafe(behind["epoch"]))
    end = F.when(behind.isNotNull() & changed_then, behind["from_ms"]).otherwise(F.col("span.until_ms"))
    return F.when(end.isNotNull(), F.greatest("start.from_ms", end))


def _filled(seen: DataFrame) -> DataFrame:
    """As `islands` takes them: what an observation leaves out is as it was."""
    so_far = (
        Window.partitionBy(*BROKER).orderBy("seq").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    known = {name: F.last(name, ignorenulls=True).over(so_far) for name in ATTRIBUTES}
    known |= {name: F.coalesce(known[name], F.lit(NONE)) for name in ("zone", "drain")}
    filled = seen.withColumns(known | {"from_ms": F.max("from_ms").over(so_far)})
    this = F.struct(*ATTRIBUTES, "segment", "from_ms", "is_checkpoint")
    start = F.struct("from_id", "from_ms", *ATTRIBUTES)
    return filled.select(*BROKER, "seq", "span", this.alias("this"), start.alias("start"))


def _reported(clean: DataFrame) -> DataFrame:
    """Registrations, which say all but the drain, and updates that say something of the broker."""
    enters, fields = F.col("kind") == "broker_registered", F.col("fields")
    says = enters | fields["zone"].isNotNull() | fields["acting"].isNotNull()
    return _observed(
        clean.where(F.col("kind").isin("broker_registered", "broker_updated")).where(says),
        cluster=F.coalesce(fields["group_cluster"], "cluster"),
        epoch=F.col("epoch"),
        zone=F.coalesce(fields["zone"], F.when(enters, NONE)),
        acting=F.coalesce(fields["acting"], F.when(enters, "0")) == "1",
    )


def _drains(clean: DataFrame) -> DataFrame:
    """A drain whose time was over ended then, and not when that was recorded."""
    drains = clean.where(F.col("kind") == "drain_changed")
    at = F.least(F.coalesce("effective_ms", "id_ms"), "id_ms")
    return _observed(drains.withColumn("id_ms", at), drain=_drain(F.col("fields")["after"]))


def _checkpointed(clean: DataFrame) -> DataFrame:
    """Return the brokers that a checkpoint round lists, with all attributes."""
    fields = F.col("fields")
    return _observed(
        checkpoints.brokers(clean),
        is_checkpoint=True,
        cluster=F.col("cluster"),
        epoch=F.col("epoch"),
        zone=F.coalesce(fields["zone"], F.lit(NONE)),
        acting=F.coalesce(fields["acting"], F.lit("0")) == "1",
        drain=_drain(fields["drain"]),
    )


def _observed(entries: DataFrame, *, is_checkpoint: bool = False, **attributes: Column) -> DataFrame:
    return entries.select(
        *BROKER,
        "seq",
        "span",
        "segment",
        F.lit(is_checkpoint).alias("is_checkpoint"),
        F.col("id").alias("from_id"),
        F.col("id_ms").alias("from_ms"),
        *(attributes.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in ATTRIBUTES.items()),
    )


def _carried(rows: DataFrame) -> DataFrame:
    """Open rows of the run before, as what was observed before all else."""
    return _observed(
        rows.where(F.col("to_ms").isNull()).select(
            "*",
            F.lit(0).cast("bigint").alias("seq"),
            F.lit(None).cast(SPAN).alias("span"),
            F.lit(0).cast("bigint").alias("segment"),
            F.col("from_id").alias("id"),
            F.col("from_ms").alias("id_ms"),
        ),
        cluster=F.col("cluster"),
        epoch=F.col("epoch"),
        zone=F.col("zone"),
        acting=F.col("acting"),
        drain=F.to_json("drain"),
    )


def _drain(text: Column) -> Column:
    """A drain as the table has it, written in one way only."""
    return F.coalesce(F.to_json(F.from_json(text, DRAIN)), F.lit(NONE))


def _some(name: str) -> Column:
    return F.when(F.col(name) != NONE, F.col(name))
