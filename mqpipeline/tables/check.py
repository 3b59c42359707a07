"""What the tables say at a checkpoint, against what the checkpoint says."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqpipeline.tables import checkpoints

ROUND = ("namespace", "inc", "round")
MEMBER = ("cluster", "broker", "broker_id", "addr")
PAIR = ("topic", "broker")


def rounds_of(clean: DataFrame, *, recorded: bool = False) -> DataFrame:
    """The whole rounds: `namespace`, `inc`, `round`, `segment`, `round_begin` and `round_end` (ids), and `proves`,
    whether history was whole up to it; `recorded`: it was before the first of these entries."""
    earlier = Window.partitionBy("namespace", "inc", "segment").orderBy("end_seq")
    known = F.col("from_start") | F.coalesce(
        F.min("end_seq").over(earlier) < F.col("begin_seq"), F.lit(False)
    )
    proves = F.lit(True) if recorded else known
    begin, end = F.col("begin_id").alias("round_begin"), F.col("end_id").alias("round_end")
    return checkpoints.whole(clean).select(*ROUND, "segment", begin, end, proves.alias("proves"))


def newest(rounds: DataFrame) -> DataFrame:
    """Return the round of each namespace that ended last."""
    last = F.row_number().over(
        Window.partitionBy("namespace").orderBy(F.desc("segment"), F.desc("round_end"))
    )
    return rounds.withColumn("last", last).where("last = 1").drop("last")


def checks(clean: DataFrame, sessions: DataFrame, routes: DataFrame, rounds: DataFrame) -> DataFrame:
    """A row for each of these `rounds_of` the clean entries: `namespace`, `inc`, `round`, `begin_ms`, `end_ms`, how
    many `members` and `pairs` it lists, `members_differing` and `pairs_differing`; and `proves`, whether history was
    whole up to it: a difference is a defect then, else it is what the round was needed for.

    Differing are those that held by the tables all the time of the round, but were not listed, and those that the
    tables know from the round alone."""
    rounds = F.broadcast(rounds)
    listed = clean.withColumn("round", F.col("fields")["round"]).join(
        rounds.select(*ROUND), [*ROUND], "left_semi"
    )
    ended = F.coalesce("end_id", _at("end_ms"))
    there = _during(sessions, rounds, "start_id", ended)
    living = there.select(*ROUND, "broker", "epoch").distinct()
    members = _compared(
        "members",
        MEMBER,
        stated=checkpoints.members(listed),
        there=there,
        new=_within(sessions.where("left_censored"), rounds, "start_id"),
    )
    in_force = _during(routes, rounds, "from_id", F.coalesce("to_id", _at("to_ms")))
    pairs = _compared(
        "pairs",
        PAIR,
        stated=checkpoints.topics(listed)
        .select(*ROUND, F.explode("rows").alias("row"))
        .select(*ROUND, "row.broker", F.explode("row.topics").alias("topic")),
        there=in_force.join(living, [*ROUND, "broker", "epoch"], "left_semi"),
        new=_within(routes.where("from_cause = 'checkpoint'"), rounds, "from_id"),
    )
    counted = ("members", "members_differing", "pairs", "pairs_differing")
    return (
        rounds.join(members, [*ROUND], "left")
        .join(pairs, [*ROUND], "left")
        .select(
            *ROUND,
            F.col("round_begin.ms").alias("begin_ms"),
            F.col("round_end.ms").alias("end_ms"),
            "proves",
            *(F.coalesce(name, F.lit(0)).alias(name) for name in counted),
        )
    )


def _compared(
    name: str, keys: Sequence[str], *, stated: DataFrame, there: DataFrame, new: DataFrame
) -> DataFrame:
    """Per round how many units were listed (`name`), and how many differ (`<name>_differing`)."""
    units = stated.select(*ROUND, *keys).distinct().withColumn("stated", F.lit(1))
    missing = there.select(*ROUND, *keys).distinct().withColumn("there", F.lit(1))
    known_from_it = new.select(*ROUND, *keys).distinct().withColumn("new", F.lit(1))
    every = units.join(missing, [*ROUND, *keys], "full").join(known_from_it, [*ROUND, *keys], "full")
    differs = F.col("new").isNotNull() | (F.col("there").isNotNull() & F.col("stated").isNull())
    return every.groupBy(*ROUND).agg(
        F.count("stated").alias(name), F.count_if(differs).alias(f"{name}_differing")
    )


def _during(rows: DataFrame, rounds: DataFrame, since: str, until: Column) -> DataFrame:
    """The rows that hold from before a round began to after it ended."""
    holding = rows.withColumn("until_id", until).join(rounds, ["namespace", "inc"])
    lasting = F.col("until_id").isNull() | (F.col("until_id") > F.col("round_end"))
    return holding.where((F.col(since) < F.col("round_begin")) & lasting)


def _within(rows: DataFrame, rounds: DataFrame, since: str) -> DataFrame:
    """The rows that begin with an entry of a round."""
    begun = rows.join(rounds, ["namespace", "inc"])
    return begun.where(F.col(since).between(F.col("round_begin"), F.col("round_end")))


def _at(ms: str) -> Column:
    """Return the last id of a ms, for an end without an entry."""
    last = F.lit(2**31 - 1).alias("n")
    return F.when(F.col(ms).isNotNull(), F.struct(F.col(ms).alias("ms"), last))
