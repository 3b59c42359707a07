"""A made-up history of any size, entry by entry as a name server writes it (docs/pipeline.md).

Every broker name has a master; every other one has a slave too, so that its epoch outlives a restart of the master.
Each member is gone once a week: mostly for an upgrade, sometimes killed, lost with its host, or moved to another
address. Once a quarter some brokers expire within seconds of each other. Topics come, grow and go; now and then
someone takes a broker's write permission away for a while.

What happens when in a week keeps one operation out of the middle of another: masters are gone in [0.05, 0.20) of it and
back by 0.30, slaves half a third later, masses expire at 0.50, permissions go at 0.60 and return at 0.61, topics
change in [0.70, 1.00).
"""

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

WEEK_MS = 7 * 86_400_000
TIMEOUT_MS = 120_000
SLICE = 500  # pairs in an entry
QUARTER_WEEKS = 13
FEW, MANY = "8,8,6,0", "16,16,6,0"
WIPED = {FEW: "8,8,4,0", MANY: "16,16,4,0"}


class Scale(NamedTuple):
    """How much there is of everything. Equal scales make equal histories."""

    brokers: int = 1_000
    topics: int = 100_000
    brokers_of_topic: int = 30
    weeks: int = 52
    clusters: int = 10
    namespace: str = "scale"
    start_ms: int = 1_767_225_600_000  # 2026-01-01
    seed: int = 1

    @property
    def stream(self) -> str:
        """The key that such a history would have in Redis."""
        return f"ns:{{{self.namespace}}}:events"


def entries(spark: SparkSession, scale: Scale) -> DataFrame:
    """-> stream string, id_ms bigint, id_n bigint, fields map<string, string>: what a read of the stream gives."""
    outages, pairs = _outages(spark, scale).cache(), _pairs(spark, scale).cache()
    registrations = _registrations(outages, scale)
    operations = (
        _started(spark, scale)
        .unionByName(_removed(outages))
        .unionByName(_registered(registrations))
        .unionByName(_first_tables(registrations, pairs))
        .unionByName(_topic_changes(outages, pairs, scale))
        .unionByName(_permissions(outages, pairs, scale))
    )
    return _numbered(operations, scale)


def _random(scale: Scale, *of: str) -> str:
    """SQL of a number in [0, 1) that depends on these columns alone."""
    return f"(pmod(xxhash64({scale.seed}, {', '.join(of)}), 1000003) / 1000003D)"


def _members(spark: SparkSession, scale: Scale) -> DataFrame:
    names = spark.range(scale.brokers).selectExpr(
        "id as b",
        "format_string('broker-%04d', id) as broker",
        f"format_string('cluster-%02d', id % {scale.clusters}) as cluster",
        "id % 2 = 1 as has_slave",
    )
    return names.withColumn("broker_id", F.expr("explode(if(has_slave, array(0, 1), array(0)))"))


def _outages(spark: SparkSession, scale: Scale) -> DataFrame:
    """A row each time a member is gone, and one for its first coming, with `week` -1 and no `gone_ms`.

    `gone_ms` is when it ended, `down_ms` when that was recorded, `at_ms` when it came back; `since_ms` when it had
    come. `epoch` and `moves` (how often its address changed) are of its stay before, `next_epoch` of the one after."""
    of = ("broker", "broker_id", "week")
    kind, length, when = (_random(scale, *of, f"'{what}'") for what in ("kind", "length", "when"))
    weekly = (
        _members(spark, scale)
        .withColumn("week", F.expr(f"explode(sequence(-1, {scale.weeks - 1}))"))
        .withColumn("kind", F.expr(kind))
        .withColumn("share", F.expr(f"if(broker_id = 0, 0.05, 0.30) + 0.15 * {when}"))
        .withColumn(
            "cause",
            F.expr(
                "case when week < 0 then 'first' when kind < 0.85 then 'unregistered' when kind < 0.92 then 'lost' "
                "when kind < 0.97 then 'expired' else 'replaced' end"
            ),
        )
    )
    masses = (
        weekly.where(f"not has_slave and b % 20 = 4 and week % {QUARTER_WEEKS} = {QUARTER_WEEKS - 1}")
        .withColumn("share", F.expr(f"0.5 + 5000 * kind / {WEEK_MS}"))
        .withColumn("cause", F.lit("expired"))
    )
    away = f"""case cause when 'unregistered' then 30000 + 150000 * {length} when 'lost' then 60000 + 1140000 * {length}
        when 'expired' then 300000 + 3300000 * {length} else 0 end"""
    before = "over (partition by broker, broker_id order by at_ms rows between unbounded preceding and 1 preceding)"
    return (
        weekly.unionByName(masses)
        .withColumn(
            "gone_ms",
            F.expr(f"if(week < 0, null, cast({scale.start_ms} + (week + share) * {WEEK_MS} as bigint))"),
        )
        .withColumn("down_ms", F.expr("gone_ms + if(cause = 'expired', cast(1000 * kind as bigint), 0)"))
        .withColumn(
            "at_ms",
            F.expr(
                f"coalesce(down_ms + cast({away} as bigint), {scale.start_ms} + 10 * (1 + 2 * b + broker_id))"
            ),
        )
        .withColumn("since_ms", F.expr(f"max(at_ms) {before}"))
        .withColumn("moves", F.expr(f"coalesce(sum(if(cause = 'replaced', 1, 0)) {before}, 0)"))
        .withColumn("renewed", F.expr("not has_slave and cause not in ('replaced', 'first')"))
        .withColumn(
            "epoch", F.expr(f"b + 1 + {scale.brokers} * coalesce(sum(if(renewed, 1, 0)) {before}, 0)")
        )
        .withColumn("next_epoch", F.expr(f"epoch + if(renewed, {scale.brokers}, 0)"))
    )


def _address(moves: str) -> str:
    return f"concat('10.', b div 250, '.', b % 250, '.', 1 + 100 * broker_id + {moves} % 100, ':10911')"


def _entry(at: str, operation: str, part: str, kind: str, *fields: str) -> list[str]:
    """An entry's columns. Those of equal `operation` and a `part` from 0 on are one group, the others one each."""
    listed = ", ".join(("'kind'", f"'{kind}'", "'op'", operation, *fields))
    return [
        f"{at} as at_ms",
        f"{operation} as operation",
        f"cast({part} as int) as part",
        f"map({listed}) as fields",
    ]


def _started(spark: SparkSession, scale: Scale) -> DataFrame:
    return spark.range(1).selectExpr(
        *_entry(
            f"{scale.start_ms}L",
            "'start'",
            "0",
            "stream_started",
            "'cause', 'empty_store', 'actor', 'job:scale'",
        )
    )


MEMBER = "'cluster', cluster, 'broker', broker, 'id', string(broker_id), 'addr'"
BROKERS_ACTOR = f"concat('wire:', {_address('moves')})"
COMING = "concat('r', b, '-', broker_id, '-', at_ms)"


def _removed(outages: DataFrame) -> DataFrame:
    """A replacement is of one group with the registration that follows it."""
    seen = "gone_ms - if(cause = 'expired', 120000, 200 + cast(29000 * kind as bigint))"
    operation = f"if(cause = 'replaced', {COMING}, concat('d', b, '-', broker_id, '-', down_ms))"
    return (
        outages.where("week >= 0")
        .withColumn("seen_ms", F.expr(seen))
        .selectExpr(
            *_entry(
                "down_ms",
                operation,
                "0",
                "broker_removed",
                f"'cause', cause, 'actor', if(cause = 'expired', 'job:expire', {BROKERS_ACTOR})",
                f"{MEMBER}, {_address('moves')}",
                "'epoch', string(epoch), 'since_ms', string(since_ms), 'last_seen_ms', string(seen_ms)",
                f"'lease_ms', string(seen_ms + {TIMEOUT_MS})",
                "'effective_ms', if(cause = 'expired', string(gone_ms), null)",
                "'closed_ms', if(cause = 'lost', string(gone_ms - 200), null)",
                "'topics', '0', 'drained', '0'",
            )
        )
    )


def _registrations(outages: DataFrame, scale: Scale) -> DataFrame:
    """A row each time a member comes, its cause and how often it had moved by then."""
    return outages.selectExpr(
        "b",
        "broker",
        "cluster",
        "broker_id",
        "at_ms",
        "next_epoch as epoch",
        "moves + if(cause = 'replaced', 1, 0) as moves",
        "case when cause = 'replaced' then 'takeover' when broker_id > 0 or (has_slave and week >= 0) then 'join' "
        "else 'first' end as cause",
    )


def _registered(registrations: DataFrame) -> DataFrame:
    return registrations.selectExpr(
        *_entry(
            "at_ms",
            COMING,
            "1",
            "broker_registered",
            f"'cause', cause, 'actor', {BROKERS_ACTOR}, {MEMBER}, {_address('moves')}, 'epoch', string(epoch)",
            f"'timeout_ms', '{TIMEOUT_MS}', 'acting', '0', 'dv', concat('0:', at_ms, ':1'), 'topics', '0'",
        )
    )


def _pairs(spark: SparkSession, scale: Scale) -> DataFrame:
    """Which broker holds which topic from when to when: `slice` is its place in the broker's table, in entries.

    A fifth of the topics comes later than the brokers, a tenth goes, a tenth gets more queues."""
    weeks = scale.weeks

    def moment(what: str, share: float) -> str:
        """The week of it, null for most."""
        lot = _random(scale, "topic", f"'{what}'")
        return f"if({lot} < {share}, cast({lot} / {share} * {weeks} as int), null)"

    topics = (
        spark.range(scale.topics)
        .withColumn("topic", F.format_string("topic-%06d-of-some-service", F.col("id")))
        .withColumn("made", F.expr(moment("made", 0.2)))
        .withColumn("grown", F.expr(moment("grown", 0.1)))
        .withColumn("ended", F.expr(moment("ended", 0.1)))
    )
    return (
        topics.withColumn(
            "n", F.expr(f"explode(sequence(0, {min(scale.brokers_of_topic, scale.brokers) - 1}))")
        )
        .withColumn(
            "b",
            F.expr(
                f"pmod(xxhash64(topic) + n * {max(scale.brokers // scale.brokers_of_topic, 1)}, {scale.brokers})"
            ),
        )
        .withColumn("at", F.expr(f"0.7 + 0.3 * {_random(scale, 'topic', 'b')}"))
        .withColumn("made_ms", F.expr(_of_week("made", scale)))
        .withColumn("grown_ms", F.expr(f"if(grown > coalesce(made, -1), {_of_week('grown', scale)}, null)"))
        .withColumn(
            "ended_ms",
            F.expr(
                f"if(ended > greatest(coalesce(made, -1), coalesce(grown, -1)), {_of_week('ended', scale)}, null)"
            ),
        )
        .withColumn("slice", F.expr(f"(row_number() over (partition by b order by topic) - 1) div {SLICE}"))
        .select("b", "topic", "slice", "made_ms", "grown_ms", "ended_ms")
    )


def _of_week(week: str, scale: Scale) -> str:
    return f"cast({scale.start_ms} + ({week} + at) * {WEEK_MS} as bigint)"


HELD = "coalesce(made_ms, 0) <= at_ms and (ended_ms is null or at_ms < ended_ms)"
VALUE = f"if(coalesce(grown_ms <= at_ms, false), '{MANY}', '{FEW}')"


def _in_entries(held: DataFrame, before: str, after: str, by: tuple[str, ...]) -> DataFrame:
    """Rows of a topic each -> rows of an entry each, with `rows` (JSON) and `count`; `by` come along."""
    return (
        held.withColumn("before", F.expr(before))
        .withColumn("after", F.expr(after))
        .groupBy(*by, "slice", "before", "after")
        .agg(F.sort_array(F.collect_list("topic")).alias("topics"))
        .withColumn(
            "row",
            F.expr(
                """concat('["', broker, '","', before, '","', after, '",["', array_join(topics, '","'), '"]]')"""
            ),
        )
        .groupBy(*by, "slice")
        .agg(
            F.concat(F.lit("["), F.array_join(F.sort_array(F.collect_list("row")), ","), F.lit("]")).alias(
                "rows"
            ),
            F.sum(F.size("topics")).alias("count"),
        )
    )


TABLE = "'cluster', cluster, 'broker', broker, 'epoch', string(epoch), 'rows', rows, 'count', string(count)"


def _first_tables(registrations: DataFrame, pairs: DataFrame) -> DataFrame:
    by = ("b", "broker", "cluster", "broker_id", "at_ms", "epoch", "moves")
    held = registrations.where("cause = 'first'").join(pairs, "b").where(HELD)
    return _in_entries(held, "''", VALUE, by).selectExpr(
        *_entry(
            "at_ms",
            COMING,
            "2 + slice",
            "topics_changed",
            f"'cause', 'register', 'actor', {BROKERS_ACTOR}, {TABLE}",
        )
    )


def _weeks(outages: DataFrame, scale: Scale) -> DataFrame:
    """A master's epoch in the later half of each week, `at_ms` its end."""
    last = F.max(F.struct("at_ms", "next_epoch", "moves"))
    by_week = (
        outages.where("broker_id = 0 and week >= 0")
        .groupBy("b", "broker", "cluster", "broker_id", "week")
        .agg(last.alias("last"))
    )
    return by_week.selectExpr(
        "b", "broker", "cluster", "broker_id", "week", "last.next_epoch as epoch", "last.moves as moves"
    )


def _topic_changes(outages: DataFrame, pairs: DataFrame, scale: Scale) -> DataFrame:
    """Each change of a topic on a broker is an entry of its own, as its operator's tool goes from broker to broker."""
    changes = pairs.selectExpr(
        "b",
        "topic",
        f"""inline(array(
            named_struct('at_ms', made_ms, 'before', '', 'after', '{FEW}'),
            named_struct('at_ms', grown_ms, 'before', '{FEW}', 'after', '{MANY}'),
            named_struct('at_ms', ended_ms, 'before', if(grown_ms is null, '{FEW}', '{MANY}'), 'after', '')))""",
    ).where("at_ms is not null")
    when = changes.withColumn("week", F.expr(f"cast((at_ms - {scale.start_ms}) div {WEEK_MS} as int)"))
    rows = """concat('[["', broker, '","', before, '","', after, '",["', topic, '"]]]')"""
    return (
        when.join(_weeks(outages, scale), ["b", "week"])
        .withColumn("rows", F.expr(rows))
        .withColumn("count", F.lit(1))
        .selectExpr(
            *_entry(
                "at_ms",
                "concat('t', b, '-', topic, '-', at_ms)",
                "0",
                "topics_changed",
                f"'cause', 'register', 'actor', {BROKERS_ACTOR}, {TABLE}, 'topic', topic",
            )
        )
    )


def _permissions(outages: DataFrame, pairs: DataFrame, scale: Scale) -> DataFrame:
    """One broker of a hundred a week is wiped (205), and restored (327) some hours later."""
    wiped = (
        _weeks(outages, scale)
        .where(f"{_random(scale, 'broker', 'week', chr(39) + 'wipe' + chr(39))} < 0.01")
        .withColumn("cause", F.expr("explode(array('wipe', 'restore'))"))
        .withColumn(
            "at_ms",
            F.expr(f"cast({scale.start_ms} + (week + if(cause = 'wipe', 0.6, 0.61)) * {WEEK_MS} as bigint)"),
        )
    )
    by = ("b", "broker", "cluster", "broker_id", "at_ms", "epoch", "cause")
    less = f"if({VALUE} = '{MANY}', '{WIPED[MANY]}', '{WIPED[FEW]}')"
    held = wiped.join(pairs, "b").where(HELD)
    entries_of = _in_entries(
        held, f"if(cause = 'wipe', {VALUE}, {less})", f"if(cause = 'wipe', {less}, {VALUE})", by
    )
    return entries_of.selectExpr(
        *_entry(
            "at_ms",
            "concat('w', b, '-', at_ms)",
            "-1 - slice",
            "topics_changed",
            f"'cause', cause, 'actor', 'token:alice', 'peer', '192.0.2.10:50112', {TABLE}",
        )
    )


def _numbered(operations: DataFrame, scale: Scale) -> DataFrame:
    """Seqs and ids in the order of the operations, and each entry's place in its group."""
    light = operations.select("at_ms", "operation", "part")
    ordered = light.selectExpr(
        "operation",
        "part",
        "row_number() over (order by at_ms, operation, abs(part)) as seq",
        "row_number() over (partition by at_ms order by operation, abs(part)) - 1 as id_n",
        "if(part < 0, 1, row_number() over (partition by operation order by part)) as part_i",
        "if(part < 0, 1, count(*) over (partition by operation)) as part_n",
    )
    common = f"""map('v', '1', 'inc', '{scale.start_ms}', 'seq', string(seq),
        'part', if(part_n = 1, null, concat(part_i, '/', part_n)))"""
    return operations.join(ordered, ["operation", "part"]).selectExpr(
        f"'{scale.stream}' as stream",
        "at_ms as id_ms",
        "cast(id_n as bigint) as id_n",
        f"map_filter(map_concat({common}, fields), (name, value) -> value is not null) as fields",
    )
