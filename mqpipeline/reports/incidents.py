"""Many members gone at once."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from mqpipeline.reports.catalogue import INCIDENTS
from mqpipeline.states.slots import SLOT

INCIDENT = ("namespace", "incident")
JOINED_MS = 30_000
MEMBERS, ONE_IN, RESTORED = 3, 10, 0.9


def incidents(slots: DataFrame, sessions: DataFrame) -> DataFrame:
    """Return INCIDENTS of type `mass_expiry` from the states of slots (`namespace`, `cluster`, `broker`,
    `broker_id`, `state`, `from_ms`, `to_ms`) and BROKER_SESSIONS.

    DOWN beginnings, by effective time, join while the next is at most JOINED_MS after the last. `members` are slots;
    `share` is of those that were UP just before; `restored_ms` is when RESTORED of them were UP again, each after the
    last time that the incident took it down. `ids` are those of the removals."""
    grouped = _beginnings(slots, sessions).transform(_joined)
    members = grouped.groupBy(*INCIDENT, *SLOT[1:]).agg(
        F.min("from_ms").alias("from_ms"),
        F.max("from_ms").alias("last_ms"),
        F.min_by("end_cause", "from_ms").alias("cause"),
        F.collect_list("end_id").alias("ids"),
        F.max_by("back_ms", "from_ms").alias("back_ms"),
    )
    gone = members.groupBy(*INCIDENT).agg(
        F.min("from_ms").alias("start_ms"),
        F.max("last_ms").alias("end_ms"),
        F.count("*").cast("int").alias("members"),
        F.sort_array(F.collect_set("cluster")).alias("clusters"),
        F.sort_array(F.flatten(F.collect_list("ids"))).alias("ids"),
        F.collect_list("cause").alias("each_cause"),
        F.sort_array(F.collect_list("back_ms")).alias("back"),
    )
    many = gone.where(F.col("members") >= MEMBERS).join(_up_before(slots), ["namespace", "start_ms"])
    described = many.withColumns(
        {
            "type": F.lit("mass_expiry"),
            "key": F.lit(""),
            "share": F.expr("try_divide(members, up)"),
            "causes": _counts("each_cause"),
            "restored_ms": F.get("back", F.ceil(F.col("members") * RESTORED).cast("int") - 1),
        }
    )
    return described.where(F.col("members") * ONE_IN >= F.col("up")).to(INCIDENTS.table.schema)


def _beginnings(slots: DataFrame, sessions: DataFrame) -> DataFrame:
    """The DOWN intervals of slots, with `end_cause` and `end_id` of the session before, and `back_ms`, the next UP.

    A session that ends at the same millisecond stands before the interval; an outage that follows UNKNOWN has its
    session further back."""
    ends = sessions.where("not open").select(*SLOT, F.col("end_ms").alias("from_ms"), "end_cause", "end_id")
    both = slots.select(*SLOT, "state", "from_ms").unionByName(ends, allowMissingColumns=True)
    ahead = Over.partitionBy(*SLOT).orderBy("from_ms", F.col("state").isNotNull(), "end_id")
    back = Over.partitionBy(*SLOT).orderBy(F.desc("from_ms"))
    last_end = F.last(F.when(F.col("state").isNull(), F.struct("end_cause", "end_id")), ignorenulls=True)
    next_up = F.last(F.when(F.col("state") == "UP", F.col("from_ms")), ignorenulls=True)
    joined = both.withColumn("ended", last_end.over(ahead)).withColumn("back_ms", next_up.over(back))
    return joined.where("state = 'DOWN'").select(*SLOT, "from_ms", "ended.*", "back_ms")


def _joined(beginnings: DataFrame) -> DataFrame:
    """Adds `incident`: the number of gaps over JOINED_MS before it."""
    in_time = Over.partitionBy("namespace").orderBy("from_ms")
    begins = F.coalesce(F.col("from_ms") - F.lag("from_ms").over(in_time) > JOINED_MS, F.lit(True))
    moments = beginnings.select("namespace", "from_ms").distinct().withColumn("begins", begins)
    numbered = moments.withColumn("incident", F.sum(F.col("begins").cast("int")).over(in_time))
    return beginnings.join(numbered.drop("begins"), ["namespace", "from_ms"])


def _up_before(slots: DataFrame) -> DataFrame:
    """Return every moment at which a state begins: `start_ms`, and `up`, the slots that were UP just before."""
    up = slots.where("state = 'UP'")
    changes = (
        slots.select("namespace", "from_ms", F.when(F.col("state") == "UP", 1).otherwise(0).alias("change"))
        .union(up.select("namespace", "to_ms", F.lit(-1)))
        .groupBy("namespace", F.col("from_ms").alias("start_ms"))
        .agg(F.sum("change").alias("change"))
    )
    before = Over.partitionBy("namespace").orderBy("start_ms").rowsBetween(Over.unboundedPreceding, -1)
    return changes.select(
        "namespace", "start_ms", F.coalesce(F.sum("change").over(before), F.lit(0)).alias("up")
    )


def _counts(column: str) -> Column:
    """How often each of an array's values is in it, as a map ordered by value."""
    return F.expr(
        f"""map_from_entries(transform(array_sort(array_distinct({column})),
        x -> struct(x, size(filter({column}, y -> y = x)))))"""
    )
