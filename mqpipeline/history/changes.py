"""What happened to a topic, in order; and the changes of permissions, with their actors."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqpipeline.history.causes import BEGAN, ENDED, PAIR, caused, within
from mqpipeline.history.members import GROUP
from mqpipeline.history.routes import PERM_WRITE
from mqpipeline.history.tables import FOREVER, Tables, during, not_ended

_NAME = ("namespace", "inc", "broker")
_OF_PAIR = f"over (partition by {', '.join(PAIR)} order by inc, from_id)"
_OF_NAME = f"over (partition by {', '.join(_NAME)} order by from_id)"
_QUEUES = "concat_ws(',', read_queues, write_queues, perm, sys_flag)"


def permission_changes(
    tables: Tables, from_ms: int, to_ms: int, *, topic: str | None = None, broker: str | None = None
) -> DataFrame:
    """-> PAIR, by, before, after: each time in (from_ms, to_ms] that a topic's permission on a broker became another.

    Of one topic, of one broker name, or of all. `by` is CAUSED. Permissions are as stored, whether the broker was
    there or not; a drain takes the write bit away (`drain`, its owner as actor) and gives it back (`undrain`)."""
    chosen = tables if topic is None else tables.of_topic(topic)
    routes, names = during(chosen.routes, from_ms, to_ms), during(tables.brokers, from_ms, to_ms)
    if broker is not None:
        routes, names = routes.where(F.col("broker") == broker), names.where(F.col("broker") == broker)
    stored = (
        routes.withColumn("before", F.expr(f"lag(perm) {_OF_PAIR}"))
        .where(f"before <> perm and {within('from_ms', from_ms, to_ms)}")
        .selectExpr(*PAIR, f"{BEGAN} as by", "before", "perm as after")
    )
    drains = _drains(names, from_ms, to_ms)
    held = "from_ms <= by.ms and coalesce(to_ms, by.ms + 1) > by.ms"
    overlaid = (
        routes.join(F.broadcast(drains), [*_NAME])
        .where(f"{held} and perm & {PERM_WRITE} <> 0")
        .selectExpr(
            *PAIR,
            "by",
            f"if(drained, perm, perm & ~{PERM_WRITE}) as before",
            f"if(drained, perm & ~{PERM_WRITE}, perm) as after",
        )
    )
    return stored.unionByName(overlaid)


def timeline(tables: Tables, topic: str, from_ms: int, to_ms: int) -> DataFrame:
    """-> PAIR, what, before, after, by: all that changed of a topic's route in (from_ms, to_ms].

    `what` is `queues` (`readQ,writeQ,perm,sysFlag` as stored), `member` (`id=address`), `zone`, `acting` or `drain`
    (its owner); `before` and `after` are text, null for nothing; `by` is CAUSED."""
    routes = during(tables.of_topic(topic).routes, from_ms, to_ms)
    holders = routes.select("topic", *GROUP).distinct()
    changes = (
        _queues(routes, from_ms, to_ms)
        .unionByName(_members(tables, holders, from_ms, to_ms))
        .unionByName(_attributes(tables, holders, from_ms, to_ms))
    )
    return changes.where(within("by.ms", from_ms, to_ms))


def _queues(routes: DataFrame, from_ms: int, to_ms: int) -> DataFrame:
    """Versions as they begin, and as they end where none begins at the same instant."""
    versions = routes.withColumns(
        {
            "before": F.expr(f"lag(struct(to_ms as ms, {_QUEUES} as queues)) {_OF_PAIR}"),
            "next_ms": F.expr(f"lead(from_ms) {_OF_PAIR}"),
        }
    )
    began = versions.selectExpr(
        *PAIR,
        "if(before.ms = from_ms, before.queues, null) as before",
        f"{_QUEUES} as after",
        f"{BEGAN} as by",
    )
    ended = versions.where("to_ms is not null and not (to_ms <=> next_ms)").selectExpr(
        *PAIR, f"{_QUEUES} as before", "cast(null as string) as after", f"{ENDED} as by"
    )
    return began.unionByName(ended).selectExpr(*PAIR, "'queues' as what", "before", "after", "by")


def _members(tables: Tables, holders: DataFrame, from_ms: int, to_ms: int) -> DataFrame:
    sessions = not_ended(tables.sessions, from_ms).where(
        f"start_ms <= {to_ms:d} and coalesce(end_ms, {FOREVER}) > {from_ms:d}"
    )
    text = "concat(broker_id, '=', addr)"
    came = f"struct(null as before, {text} as after, {caused('start_ms', 'start_id', 'start_cause')} as by)"
    left = f"struct({text} as before, null as after, {caused('end_ms', 'end_id', 'end_cause')} as by)"
    return (
        sessions.join(F.broadcast(holders), GROUP)
        .selectExpr(*PAIR, "'member' as what", f"inline(array({came}, {left}))")
        .where("by.ms is not null")
    )


def _attributes(tables: Tables, holders: DataFrame, from_ms: int, to_ms: int) -> DataFrame:
    """Zone, acting and drain, where one of them became another."""
    values = {"zone": "zone", "acting": "cast(acting as string)", "drain": "drain.owner"}
    versions = during(tables.brokers, from_ms, to_ms)
    text = ", ".join(f"{sql} as {name}" for name, sql in values.items())
    changes = ", ".join(
        f"struct('{name}' as what, before.{name} as before, now.{name} as after)" for name in values
    )
    by = caused("from_ms", "from_id", "'register'")
    drain = caused("from_ms", "from_id", "if(now.drain is null, 'undrain', 'drain')", "now.drain")
    return (
        versions.withColumn("now", F.expr(f"struct({text})"))
        .withColumn("before", F.expr(f"lag(now) {_OF_NAME}"))
        .where("before is not null")
        .join(F.broadcast(holders.drop("epoch").distinct()), [*_NAME])
        .selectExpr(*PAIR, f"{by} as updated", f"{drain} as drained", f"inline(array({changes}))")
        .where("not (before <=> after)")
        .selectExpr(*PAIR, "what", "before", "after", "if(what = 'drain', drained, updated) as by")
    )


def _drains(names: DataFrame, from_ms: int, to_ms: int) -> DataFrame:
    """-> namespace, inc, broker, drained, by: drains that begin, and those that end."""
    began = caused("from_ms", "from_id", "'drain'", "drain.owner")
    ended = caused("from_ms", "from_id", "'undrain'")
    over = caused("drain.until_ms", "null", "'drain_end'")
    begins = "was is not null and was.drain is null and drain is not null"
    ends = f"was.drain is not null and drain is null and coalesce(was.drain.until_ms, {FOREVER}) > from_ms"
    runs_out = f"drain.until_ms <= coalesce(to_ms, {FOREVER})"
    drains = ", ".join(
        f"if({condition}, struct({drained} as drained, {by} as by), null)"
        for condition, drained, by in ((begins, True, began), (ends, False, ended), (runs_out, False, over))
    )
    return (
        names.withColumn("was", F.expr(f"lag(struct(drain)) {_OF_NAME}"))
        .selectExpr(*_NAME, f"inline(array_compact(array({drains})))")
        .where(within("by.ms", from_ms, to_ms))
    )
