"""What the entries of a checkpoint round say: the one place that knows their fields (docs/events.md)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

MEMBERS = "map<string, struct<cluster: string, addr: string, since_ms: bigint>>"


def members(clean: DataFrame) -> DataFrame:
    """Return a row for each member listed: the entry's columns with its `cluster`, `broker_id`, `addr`, `since_ms`."""
    listed = F.from_json(F.col("fields")["members"], MEMBERS)
    return (
        _of(clean, "broker", "members")
        .drop("cluster", "broker_id", "addr", "since_ms")
        .select("*", F.explode(listed).alias("id_in_group", "member"))
        .select("*", F.col("id_in_group").cast("bigint").alias("broker_id"), "member.*")
        .drop("id_in_group", "member")
    )


def brokers(clean: DataFrame) -> DataFrame:
    """Return the entries that list all attributes of a broker: in `fields` `cluster`, `acting`, `zone` and `drain`, of
    which the last two are left out where there is none."""
    return _of(clean, "broker")


def topics(clean: DataFrame) -> DataFrame:
    """Return the entries whose `rows` list queue data of a checkpoint."""
    return clean.where(is_topics_checkpoint())


def is_topics_checkpoint() -> Column:
    """Whether an entry is one of those."""
    return _is_of("topics")


def _of(clean: DataFrame, *scopes: str) -> DataFrame:
    return clean.where(_is_of(*scopes))


def _is_of(*scopes: str) -> Column:
    return (F.col("kind") == "checkpoint") & F.col("fields")["scope"].isin(*scopes)


def begun_late(clean: DataFrame) -> DataFrame:
    """Return the incarnations, `namespace` and `inc`, that began beside tables whose stream was gone: what they say is
    not known from their first entry on."""
    began = (F.col("kind") == "stream_started") & (F.col("cause") == "stream_lost") & (F.col("seq") == 1)
    return clean.where(began).select("namespace", "inc").distinct().withColumn("begun_late", F.lit(True))


def whole(clean: DataFrame) -> DataFrame:
    """Return the checkpoint rounds recorded from begin to end without a hole: `namespace`, `inc`, `segment`,
    `round`, `from_start`, whether all is known that was before it, `begin_seq`, `end_seq`, `begin_id`, `end_id`."""

    def edge(scope: str, column: str) -> Column:
        return F.min(F.when(F.col("fields")["scope"] == scope, F.col(column)))

    return (
        _of(clean, "begin", "end")
        .groupBy("namespace", "inc", "segment", F.col("fields")["round"].alias("round"))
        .agg(
            F.min("span.first_seq").alias("first_seq"),
            *(
                edge(scope, name).alias(f"{scope}_{name}")
                for scope in ("begin", "end")
                for name in ("seq", "id")
            ),
        )
        .where("begin_seq < end_seq")
        .join(F.broadcast(begun_late(clean)), ["namespace", "inc"], "left")
        .withColumn("from_start", F.expr("first_seq = 1 and begun_late is null"))
        .drop("first_seq", "begun_late")
    )
