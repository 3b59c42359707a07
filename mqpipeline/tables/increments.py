"""What a run may take over from the run before, and for which namespaces it has to begin from scratch.

An incremental run gives the tables the open rows of the run before (`carried`) and the entries since. That is right,
row for row, only where these entries follow without a hole on a history that was whole."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqpipeline.clean import runs
from mqpipeline.tables import checkpoints

POSITIONS = "namespace string, inc bigint, seq bigint, batch bigint, recorded boolean"


def positions(events: DataFrame, clean: DataFrame, gaps: DataFrame) -> DataFrame:
    """How far a run over all events came, for the next one to go on from: per namespace the newest entry folded, `inc`
    and `seq`; the newest `batch` read; and whether history around it is `recorded`: known from its beginning or from a
    whole checkpoint round on, beyond all `gaps` of a lost primary, whose entries would be taken for what comes, and in
    time: the clock of a new store may be behind what the old one recorded."""
    checkpointed = (
        checkpoints.whole(clean)
        .select("namespace", "inc", "segment")
        .distinct()
        .withColumn("checkpointed", F.lit(True))
    )
    lost = gaps.where("type = 'rollback'").groupBy("namespace", "inc").agg(F.max("to_seq").alias("lost_seq"))
    from_start = (F.col("first_seq") == 1) & F.col("begun_late").isNull()
    whole = from_start | F.coalesce("checkpointed", F.lit(False))
    beyond = F.coalesce(F.col("lost_seq") <= F.col("seq"), F.lit(True))
    in_time = F.coalesce(F.col("id_ms") >= F.col("after_ms"), F.lit(True))
    return (
        _newest(events, clean)
        .join(checkpointed, ["namespace", "inc", "segment"], "left")
        .join(lost, ["namespace", "inc"], "left")
        .join(checkpoints.begun_late(clean), ["namespace", "inc"], "left")
        .select("namespace", *_AT, (whole & beyond & in_time).alias("recorded"))
    )


def moved(events: DataFrame, clean: DataFrame, before: DataFrame) -> DataFrame:
    """The same of an incremental run, which went on from the positions `before`; the clean entries are those since."""
    carried = before.select(
        "namespace", F.col("recorded"), *(F.col(name).alias(f"old_{name}") for name in _AT)
    )
    every = carried.join(_newest(events, clean).select("namespace", *_AT), ["namespace"], "left")
    return every.select(
        "namespace", *(F.coalesce(name, f"old_{name}").alias(name) for name in _AT), "recorded"
    )


def _newest(events: DataFrame, clean: DataFrame) -> DataFrame:
    newest = clean.groupBy("namespace").agg(
        F.max(F.struct("segment", "seq", "inc", "span.first_seq", "id_ms", "span.after_ms")).alias("at")
    )
    read = events.groupBy("namespace").agg(F.max("batch").alias("batch"))
    return read.join(newest.select("namespace", "at.*"), ["namespace"])


_AT = ("inc", "seq", "batch")


def fresh(events: DataFrame, positions: DataFrame) -> DataFrame:
    """The events behind the positions, and all of namespaces that have none."""
    placed = _beside(events, positions)
    return placed.where(F.col("position_seq").isNull() | ~_folded()).select(*events.columns)


def discontinuous(events: DataFrame, positions: DataFrame) -> DataFrame:
    """The `namespace`s whose tables have to be made of all events again: new ones; those not recorded; those with new
    gaps, or with entries that came late or again."""
    late = _beside(events, positions).where((F.col("batch") > F.col("position_batch")) & _folded())
    new_runs = runs(fresh(events, positions)).select(
        "namespace", F.col("inc").alias("run_inc"), "first_seq", "backs"
    )
    follows = F.expr("run_inc = inc and first_seq = seq + 1 and size(backs) = 0 and recorded")
    unfit = new_runs.join(F.broadcast(positions), ["namespace"], "left").where(
        ~F.coalesce(follows, F.lit(False))
    )
    return unfit.select("namespace").unionByName(late.select("namespace")).distinct()


def _beside(events: DataFrame, positions: DataFrame) -> DataFrame:
    named = positions.select("namespace", *(F.col(name).alias(f"position_{name}") for name in _AT))
    return events.join(F.broadcast(named), ["namespace"], "left")


def _folded() -> Column:
    """Entries of other incarnations are what was read before: whatever comes of them makes tables from scratch."""
    read = F.col("batch") <= F.col("position_batch")
    same = F.col("inc") == F.col("position_inc")
    return F.coalesce(F.when(same, F.col("seq") <= F.col("position_seq")).otherwise(read), F.lit(False))
