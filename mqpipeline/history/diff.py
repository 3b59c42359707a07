"""What differs between two times, and what made it so."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqpipeline.history.causes import BEGAN, CAUSED, ENDED, PAIR, caused, within
from mqpipeline.history.members import GROUP, groups, with_group_at
from mqpipeline.history.routes import QUEUES, SHOWN, shown
from mqpipeline.history.tables import FOREVER, Tables, during


def diff(
    tables: Tables, from_ms: int, to_ms: int, topic: str | None = None, *, acting_master: bool = False
) -> DataFrame:
    """-> PAIR, change, fields, by, before, after: each broker of each topic of which 105 replied otherwise at `to_ms`
    than at `from_ms`.

    `change` is `added`, `removed` or `changed`; `fields` are those of SHOWN that differ; `before` and `after` are
    struct<SHOWN>; `by` is CAUSED by the last operation that changed it, as far as the tables have it: broker sessions
    have no actor. Of all topics, only what changed in between is looked at. `acting_master` as in `routes_at`."""
    routes = tables.routes if topic is None else tables.of_topic(topic).routes
    touched = (
        f"touched or {within('from_ms', from_ms, to_ms)} or {within('coalesce(to_ms, 0)', from_ms, to_ms)}"
    )
    joined = (
        during(routes, from_ms, to_ms)
        .join(F.broadcast(_living(tables, from_ms, to_ms)), GROUP)
        .where(touched)
        .withColumn("to_ms", F.expr(f"coalesce(to_ms, {FOREVER})"))
    )
    seen = {
        "group_before": f"from_ms <= {from_ms:d} and to_ms > {from_ms:d} and group_before is not null",
        "group_after": f"from_ms <= {to_ms:d} and to_ms > {to_ms:d} and group_after is not null",
    }
    row = {group: shown(group, acting_master=acting_master) for group in seen}
    versions = joined.withColumns({"began": F.expr(BEGAN), "gone": F.expr(_GONE)}).selectExpr(
        *PAIR,
        f"if({seen['group_before']}, {row['group_before']}, null) as before",
        f"""if({seen["group_after"]}, struct(
            {row["group_after"]} as shown, began, came, latest, {_ATTRIBUTES} as attributes), null) as now""",
        "began",
        f"if(gone.ms <= {to_ms:d}, gone, null) as gone",
        "to_ms",
    )
    pairs = versions.groupBy(*PAIR).agg(
        F.first("before", ignorenulls=True).alias("before"),
        F.first("now", ignorenulls=True).alias("now"),
        F.max("gone").alias("gone"),
        F.collect_set("began").alias("begins"),
        F.collect_set("to_ms").alias("ends"),
    )
    compared = pairs.selectExpr(
        *PAIR, "before", "now.shown as after", "now", "gone", "begins", "ends", f"{_DIFFERING} as differing"
    )
    return compared.where(
        "before is null and after is not null or before is not null and (after is null or size(differing) > 0)"
    ).selectExpr(
        *PAIR,
        "if(before is null, 'added', if(after is null, 'removed', 'changed')) as change",
        "if(before is null or after is null, null, differing) as fields",
        f"{_by(from_ms)} as by",
        "before",
        "after",
    )


def _living(tables: Tables, from_ms: int, to_ms: int) -> DataFrame:
    """-> GROUP, touched, group_before, group_after, came, left, latest: each group there in between.

    `touched`: a member or an attribute changed; `came` and `left` are CAUSED by the begin and the end (FOREVER: not
    yet) of the last time over which it had a member, `latest` by the last member that came or went, null if none
    did."""
    starts = f"transform(sessions, s -> {caused('s.start_ms', 's.start_id', 's.start_cause')})"
    ends = f"transform(sessions, s -> {caused('s.until_ms', 's.end_id', 's.end_cause')})"
    came = f"""aggregate(sessions, struct({-FOREVER} as until_ms, cast(null as {CAUSED}) as came), (a, s) -> struct(
        greatest(a.until_ms, s.until_ms) as until_ms,
        if(s.start_ms > a.until_ms, {caused("s.start_ms", "s.start_id", "s.start_cause")}, a.came) as came)).came"""
    latest = f"array_max(filter(concat({ends}, {starts}), c -> {within('c.ms', from_ms, to_ms)}))"
    held = f"""exists(attributes, a -> {within("a.from_ms", from_ms, to_ms)}
        or coalesce({within("a.drain.until_ms", from_ms, to_ms)}, false))"""
    living = groups(tables, from_ms, to_ms).withColumns(
        {"came": F.expr(came), "left": F.expr(f"array_max({ends})"), "latest": F.expr(latest)}
    )
    both = with_group_at(with_group_at(living, from_ms, "group_before"), to_ms, "group_after")
    touched = f"latest is not null or coalesce({held}, false) as touched"
    return both.selectExpr(*GROUP, touched, "group_before", "group_after", "came", "left", "latest")


_GONE = f"if(to_ms <= came.ms or to_ms <= left.ms, {ENDED}, left)"
"""The end of the version, or of its group where that was first, and the last."""
_ATTRIBUTES = f"""case
    when group_before.drain is not null and group_after.drain is null and group_before.since = group_after.since
        then {caused("group_before.drain.until_ms", "null", "'drain_end'")}
    when group_before.drain is null and group_after.drain is not null
        then {caused("group_after.since.ms", "group_after.since.id", "'drain'", "group_after.drain.owner")}
    when group_before.drain is not null and group_after.drain is null
        then {caused("group_after.since.ms", "group_after.since.id", "'undrain'")}
    else {caused("group_after.since.ms", "group_after.since.id", "'register'")} end"""
"""What changed the drain, the zone or acting; a drain names its owner as actor."""


def _differs(name: str) -> str:
    sides = [f"before.{name}", f"now.shown.{name}"]
    if name == "addrs":  # maps are not comparable
        sides = [f"array_sort(map_entries({side}))" for side in sides]
    return f"not ({sides[0]} <=> {sides[1]})"


_NAMED = ", ".join(f"if({_differs(name)}, '{name}', null)" for name in SHOWN)
_DIFFERING = f"array_compact(array({_NAMED}))"
"""The names of SHOWN that are not the same before and after."""


def _by(from_ms: int) -> str:
    """SQL of what the row is CAUSED by."""
    queues = f"arrays_overlap(differing, array({', '.join(map(repr, QUEUES))}))"
    return f"""case
        when before is null then coalesce(
            array_max(filter(begins, b -> b.ms >= now.came.ms and not array_contains(ends, b.ms))), now.came)
        when after is null then gone
        when {queues} and now.began.ms > {from_ms:d} then now.began
        when not {queues} and arrays_overlap(differing, array('addrs', 'cluster')) then now.latest
        else now.attributes end"""
