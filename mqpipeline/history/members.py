"""Groups: the members of a broker name, over a while and at an instant, and what held of the name."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqpipeline.history.tables import FOREVER, Tables, during, not_ended

GROUP = ["namespace", "inc", "broker", "epoch"]
"""What queue data belong to: a broker name from its first registration until it is empty."""
_NAME = ["namespace", "inc", "broker"]


def groups(tables: Tables, from_ms: int, to_ms: int, *, as_recorded: bool = False) -> DataFrame:
    """-> GROUP, sessions, attributes: each group with a member at some instant of [from_ms, to_ms].

    `sessions` are structs of their columns, oldest first, `until_ms` FOREVER while open; `attributes` are what held
    of the name, likewise. A member that fell silent is gone from the end of its lease, or `as_recorded` from when
    that was written."""
    candidates = (
        tables.sessions if as_recorded else not_ended(tables.sessions, from_ms)
    )  # its month is that of `end_ms`
    end = "recorded_ms, end_ms" if as_recorded else "end_ms"
    session = F.struct(
        "start_id",
        "start_ms",
        "start_cause",
        "until_ms",
        "end_cause",
        "end_id",
        "broker_id",
        "addr",
        "cluster",
    )
    sessions = (
        candidates.withColumn("until_ms", F.expr(f"coalesce({end}, {FOREVER})"))
        .where(f"start_ms <= {to_ms:d} and until_ms > {from_ms:d}")
        .groupBy(*GROUP)
        .agg(F.array_sort(F.collect_list(session)).alias("sessions"))
    )
    held = F.struct("from_id", "from_ms", "until_ms", "cluster", "acting", "zone", "drain")
    attributes = (
        during(tables.brokers, from_ms, to_ms)
        .withColumn("until_ms", F.expr(f"coalesce(to_ms, {FOREVER})"))
        .groupBy(*_NAME)
        .agg(F.array_sort(F.collect_list(held)).alias("attributes"))
    )
    return sessions.join(attributes, _NAME, "left")


def with_group_at(found: DataFrame, at_ms: int, name: str) -> DataFrame:
    """The same with a column more, struct<cluster, addrs map<broker id, address>, acting, zone, drain, since>: each
    group as it was then, null if it had no member.

    Of two members with one id the later is taken. A drain whose time is over ends by itself, before its end is
    written. `since` is struct<ms, id>: when acting, zone and drain came to be as they are."""
    at = f"{at_ms:d}"
    members = f"filter(sessions, s -> s.start_ms <= {at} and s.until_ms > {at})"
    held = f"try_element_at(filter(attributes, a -> a.from_ms <= {at} and a.until_ms > {at}), -1)"
    ids = "array_sort(array_distinct(transform(members, m -> m.broker_id)))"
    group = f"""if(size(members) = 0, null, struct(
        coalesce(held.cluster, members[0].cluster) as cluster,
        map_from_arrays(
            {ids}, transform({ids}, i -> element_at(filter(members, m -> m.broker_id = i), -1).addr)
        ) as addrs,
        coalesce(held.acting, false) as acting,
        held.zone as zone,
        if(coalesce(held.drain.until_ms, {FOREVER}) > {at}, held.drain, null) as drain,
        struct(held.from_ms as ms, held.from_id as id) as since))"""
    return (
        found.withColumns({"members": F.expr(members), "held": F.expr(held)})
        .withColumn(name, F.expr(group))
        .drop("members", "held")
    )
