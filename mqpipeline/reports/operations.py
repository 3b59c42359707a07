"""Operations on routes, each of one or more entries."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

OP = ("namespace", "inc", "op", "broker")
OPERATION = (*OP, "cause", "share")
"""What identifies an operation; `broker` is null of one on topics of several."""
WHOLE = ("broker_registered", "broker_removed", "broker_updated", "drain_changed")
"""Kinds that change all topics of their broker at once."""
ALONE = -1  # `share` of what belongs to no registration


def entries(events: DataFrame) -> DataFrame:
    """The entries of clean events that make up operations: the columns of OPERATION, `seq`, `kind`, `cluster`,
    `topics`, `rows`, `id_ms`, and

    `named`: topics that it names otherwise than by rows; `operation_ms`: when its operation changed an answer first;
    `whole`: whether the operation changed all topics of its broker.

    What one `op` does to one broker is one operation, but each removal is its own. A registration takes in the update
    and the topics that it brought. Not among the entries: a data version alone, KV but ORDER_TOPIC_CONFIG, what changes
    no route."""
    counted = events.where(_counts()).select(
        "namespace",
        "inc",
        F.coalesce("op", F.concat_ws("-", "id_ms", "id_n")).alias("op"),
        "broker",
        "seq",
        "id_ms",
        "kind",
        "cause",
        "cluster",
        "topics",
        F.when(F.col("kind") == "topics_changed", F.col("rows")).alias("rows"),
        _named().alias("named"),
        F.coalesce("effective_ms", "id_ms").alias("at_ms"),
    )
    return counted.transform(_with_registration).transform(_with_operation).drop("at_ms")


def changes() -> Column:
    """How many changes the entries of an operation count as, an aggregate: its registrations or its removal, or one."""
    members = F.count_if(F.col("kind").isin("broker_registered", "broker_removed"))
    return F.when(F.first("share") == ALONE, 1).otherwise(members)


def _counts() -> Column:
    """Whether an entry is of an operation."""
    updates = F.expr("exists(array('zone', 'acting', 'filters'), x -> fields[x] is not null)")
    return (
        F.col("kind").isin(
            "broker_registered", "broker_removed", "topics_changed", "mappings_changed", "drain_changed"
        )
        | ((F.col("kind") == "broker_updated") & updates)
        | _orders()
    )


def _orders() -> Column:
    return F.expr("kind = 'kv_changed' and fields['kv_ns'] = 'ORDER_TOPIC_CONFIG'")


def _named() -> Column:
    mapped = F.expr("transform(from_json(fields['rows'], 'array<array<string>>'), x -> get(x, 1))")
    return F.when(F.col("kind") == "mappings_changed", mapped).when(
        _orders(), F.array(F.expr("fields['key']"))
    )


def _with_registration(counted: DataFrame) -> DataFrame:
    """Gives what belongs to a registration its cause; `share` separates its entries, each removal and the rest."""
    registers = F.col("kind") == "broker_registered"
    registration = F.max(F.when(registers, F.col("cause"))).over(Over.partitionBy(*OP))
    brought = F.col("kind").isin("broker_updated", "topics_changed", "mappings_changed") & (
        (F.col("cause") == "register") | (F.col("cause") == F.col("registration"))
    )
    belongs = registers | (F.col("registration").isNotNull() & brought)
    share = F.when(F.col("kind") == "broker_removed", F.col("seq")).when(belongs, 0).otherwise(ALONE)
    return (
        counted.withColumn("registration", registration)
        .withColumns(
            {
                "cause": F.when(belongs & ~registers, F.col("registration")).otherwise(F.col("cause")),
                "share": share,
            }
        )
        .drop("registration")
    )


def _with_operation(entries: DataFrame) -> DataFrame:
    """Adds `operation_ms` and `whole`, by the order that its registration was found in: rows are long to sort."""
    op = Over.partitionBy(*OP)
    alone, member = F.col("share") == ALONE, F.col("share") == 0
    first_alone, first_member = (F.min(F.when(these, F.col("at_ms"))).over(op) for these in (alone, member))
    whole_alone = F.max(alone & F.col("kind").isin(*WHOLE)).over(op)
    return entries.withColumns(
        {
            "operation_ms": F.when(alone, first_alone).when(member, first_member).otherwise(F.col("at_ms")),
            "whole": ~alone | whole_alone,
        }
    )
