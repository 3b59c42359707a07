"""Sessions: the stays of members in their slots."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqpipeline.clean import SPAN
from mqpipeline.schemas import BROKER_SESSIONS, ID
from mqpipeline.tables import checkpoints
from mqpipeline.tables.islands import islands

SLOT = ("namespace", "inc", "cluster", "broker", "broker_id")
START = ("start_id", "addr", "epoch", "start_ms", "start_cause", "left_censored")


def sessions(clean: DataFrame, carried: DataFrame | None = None) -> DataFrame:
    """BROKER_SESSIONS, of clean events. With `carried`, the open rows of the run before, `clean` are the events since;
    the result then has the rows that are open now, and those that have ended since."""
    seen = _reported(clean).unionByName(_checkpointed(clean))
    if carried is not None:
        seen = seen.unionByName(_carried(carried))
    stays = islands(seen, SLOT, ("seq",), _goes_on, ("held", "addr", "since_ms", "segment"))
    return stays.select(*SLOT, "start.*", _end().alias("end")).select(
        *SLOT, *START, "end.*", F.col("end.end_ms").isNull().alias("open")
    )[[*BROKER_SESSIONS.schema.fieldNames()]]


def _goes_on(one: Column, then: Column) -> Column:
    """Whether the next observation is of the same stay. Behind a hole it is if it says that the member registered no
    later than this one did: a member keeps its `since_ms` where it changes its slot."""
    same = one["held"] & ~then["enters"] & (one["addr"] == then["addr"])
    return same & ((one["segment"] == then["segment"]) | (then["since_ms"] <= one["since_ms"]))


def _end() -> Column:
    """How the stay of a row ended, all null while it is open. It ends no later than it was recorded, nor before it
    began, whatever the clock did between."""
    start, recorded = F.col("start.start_ms"), F.col("id.ms")
    left = F.col("removal")
    effective = F.greatest(start, F.least(F.coalesce(left["effective_ms"], recorded), recorded))
    removed = _ending(
        end_ms=effective,
        end_id=F.col("id"),
        recorded_ms=F.greatest(effective, recorded),
        end_cause=left["cause"],
        last_seen_ms=left["last_seen_ms"],
        closed_ms=left["closed_ms"],
        drained=left["drained"],
    )
    reported_again = F.col("next.segment") == F.col("this.segment")
    cut_ms = F.greatest(start, F.when(reported_again, F.col("next.ms")).otherwise(F.col("span.until_ms")))
    cut = _ending(
        end_ms=cut_ms,
        recorded_ms=cut_ms,
        end_cause=F.when(reported_again, "gap").otherwise(F.col("span.until_cause")),
    )
    broken = reported_again | F.col("span.until_cause").isNotNull()
    return F.when(left.isNotNull(), removed).when(broken, cut).otherwise(_ending())


def _ending(**given: Column) -> Column:
    return F.struct(
        *(given.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in _END_TYPES.items())
    )


_END_TYPES = {
    "end_ms": "bigint",
    "end_id": ID,
    "recorded_ms": "bigint",
    "end_cause": "string",
    "last_seen_ms": "bigint",
    "closed_ms": "bigint",
    "drained": "boolean",
}


def _reported(clean: DataFrame) -> DataFrame:
    """Registrations and removals. A removal may be the first that is read of a stay: that began at its `since_ms`."""
    changes = clean.where(F.col("kind").isin("broker_registered", "broker_removed"))
    enters = F.col("kind") == "broker_registered"
    since = F.when(enters, F.col("id_ms")).otherwise(F.coalesce("since_ms", "id_ms"))
    removal = F.struct("cause", "effective_ms", "last_seen_ms", "closed_ms", "drained")
    return _observed(changes.withColumn("since_ms", since), enters, F.when(~enters, removal))


def _checkpointed(clean: DataFrame) -> DataFrame:
    """Return the members that a checkpoint round lists."""
    return _observed(checkpoints.members(clean), F.lit(False), F.lit(None).cast(_REMOVAL))


_REMOVAL = (
    "struct<cause: string, effective_ms: bigint, last_seen_ms: bigint, closed_ms: bigint, drained: boolean>"
)


def _observed(entries: DataFrame, enters: Column, removal: Column) -> DataFrame:
    """As `islands` takes them: entries with a member and its `since_ms`."""
    this = F.struct(
        removal.isNull().alias("held"),
        enters.alias("enters"),
        "addr",
        "since_ms",
        "segment",
        F.col("id_ms").alias("ms"),
    )
    start_ms = F.greatest(F.coalesce("since_ms", "id_ms"), "span.after_ms")
    start = F.struct(
        F.col("id").alias("start_id"),
        "addr",
        "epoch",
        start_ms.alias("start_ms"),
        F.when(enters, F.col("cause")).alias("start_cause"),
        (~enters).alias("left_censored"),
    )
    return entries.select(
        *SLOT, "seq", "id", "span", this.alias("this"), start.alias("start"), removal.alias("removal")
    )


def _carried(rows: DataFrame) -> DataFrame:
    """Open rows of the run before, as what was observed before all else."""
    this = F.struct(
        F.lit(True).alias("held"),
        F.lit(True).alias("enters"),
        "addr",
        F.col("start_ms").alias("since_ms"),
        F.lit(0).cast("bigint").alias("segment"),
        F.col("start_ms").alias("ms"),
    )
    return rows.where("open").select(
        *SLOT,
        F.lit(0).cast("bigint").alias("seq"),
        F.col("start_id").alias("id"),
        F.lit(None).cast(SPAN).alias("span"),
        this.alias("this"),
        F.struct(*START).alias("start"),
        F.lit(None).cast(_REMOVAL).alias("removal"),
    )
