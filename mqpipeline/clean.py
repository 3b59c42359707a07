"""The landing without what never happened and what cannot be used: what all tables are made of.

One pass over five narrow columns finds where history is whole (`runs`, a few rows); whether an entry is to be folded,
and how far the history around it reaches, is then known from its `seq`.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from mqpipeline.partitions import in_one
from mqpipeline.schemas import GAPS

VERSION = 1
"""The newest `v` whose meaning is known here."""
KINDS = (
    "stream_started",
    "broker_registered",
    "broker_updated",
    "broker_removed",
    "topics_changed",
    "mappings_changed",
    "drain_changed",
    "kv_changed",
    "settings_changed",
    "hold_changed",
    "access_changed",
    "access_denied",
    "conflict_seen",
    "tables_repaired",
    "drift_changed",
    "checkpoint",
)
SPAN = "struct<first_seq: bigint, after_ms: bigint, until_ms: bigint, until_cause: string>"
BACK = "struct<seq: bigint, batch: bigint, ms: bigint, n: int>"
STREAM = ("namespace", "inc")
WORD = (*STREAM, "word")
WORD_BITS = 6
BUCKET_BITS = 16  # so many seqs are looked at together, whatever the length of a stream


def clean(events: DataFrame, runs_of_them: DataFrame | None = None) -> DataFrame:
    """The entries to be folded, of EVENTS (and of `runs(events)`, where they are at hand): the columns of EVENTS less
    `batch`, and

    id       struct<ms, n>, what tables name an entry by
    segment  number of holes and incarnations before it in its namespace: history within a segment is whole
    span     of that segment: `first_seq`; `after_ms`, before which nothing is known for sure, null if nothing was
             read before; `until_ms` and `until_cause` (`gap`, `incarnation`), where it breaks off, null if it does not
    """
    whole = runs(events) if runs_of_them is None else runs_of_them
    entries = _with_fate(events, whole).where("fate is null")
    # Spark leaves out the other half where nothing was read twice, as in nearly every landing
    doubled = _with_fate(events, whole.where("twice_from is not null"), "inner").where(
        "fate is null and twice"
    )
    # what is left of a seq is one entry; its kind is among the keys so that readers of some kinds shuffle only those
    repeats = Window.partitionBy(*STREAM, "seq", "kind").orderBy("batch", "id_ms", "id_n")
    once = doubled.withColumn("repeat", F.row_number().over(repeats)).where("repeat = 1").drop("repeat")
    return entries.where("not twice").unionByName(once).drop("batch", "fate", "twice")


def counts(
    events: DataFrame, runs_of_them: DataFrame | None = None, positions: DataFrame | None = None
) -> DataFrame:
    """Rows of EVENTS with a number, in each `namespace`: `events` of them, of which are `repeats` and `phantoms`; and
    among the others the entries that are not folded: `unknown` (kinds and versions) and `incomplete` (groups). Where
    there are `positions` (`namespace`, `inc`, `seq`), those behind them are `waiting` and counted nowhere else."""
    whole = runs(events) if runs_of_them is None else runs_of_them
    if positions is None:
        positions = in_one(events.sparkSession, [], "namespace string, inc bigint, seq bigint")
    segments = whole.groupBy(*STREAM).agg(F.max("segment").alias("segment"))
    placed = positions.join(segments, [*STREAM], "left")
    known = F.broadcast(placed.select("namespace", F.struct("inc", "seq", "segment").alias("known")))
    later = "coalesce(if(inc = known.inc, seq > known.seq, segment > known.segment), false)"
    behind = f"not (fate <=> 'phantom') and {later}"
    until = "if(known.inc = inc, least(last_seq, known.seq), if(known.segment < segment, first_seq - 1, last_seq))"
    real = (
        whole.join(known, ["namespace"], "left")
        .selectExpr("namespace", f"greatest({until} - first_seq + 1, 0L) as real")
        .groupBy("namespace")
        .agg(F.sum("real").alias("real"))
    )
    by_fate = (
        _with_fate(events.where("inc is not null and seq is not null"), whole)
        .join(known, ["namespace"], "left")
        .groupBy("namespace", F.expr(behind).alias("behind"), "fate")
        .agg(
            F.count("*").alias("rows"),
            F.expr("count(distinct if(fate is null, null, struct(inc, seq)))").alias("entries"),
        )
    )
    counted = by_fate.groupBy("namespace").agg(
        *(
            F.expr(f"coalesce(sum({of}) filter (where {which}), 0L)").alias(name)
            for name, of, which in (
                ("events", "rows", "not behind"),
                ("phantoms", "rows", "not behind and fate = 'phantom'"),
                ("unknown", "entries", "not behind and fate = 'unknown'"),
                ("incomplete", "entries", "not behind and fate = 'incomplete'"),
                ("waiting", "rows", "behind"),
            )
        )
    )
    repeats = F.expr("events - phantoms - coalesce(real, 0L)").alias("repeats")
    return counted.join(real, ["namespace"], "left").select("*", repeats).drop("real")


def gaps(events: DataFrame, runs_of_them: DataFrame | None = None) -> DataFrame:
    """GAPS, of EVENTS."""
    whole = runs(events) if runs_of_them is None else runs_of_them
    earlier = Window.partitionBy(*STREAM).orderBy("segment")
    behind = whole.withColumns(
        {
            "before": F.lag(F.struct("inc", "last_seq", "last_ms")).over(_in_order()),
            "known_seq": F.lag("last_seq").over(earlier),
        }
    )
    behind = behind.where(F.col("before").isNotNull())
    same = F.col("before.inc") == F.col("inc")
    missing_from = F.coalesce(F.col("known_seq") + 1, F.lit(1))
    hole = F.struct(
        F.lit("hole").alias("type"),
        missing_from.cast("bigint").alias("from_seq"),
        (F.col("first_seq") - 1).alias("to_seq"),
        F.col("before.last_ms").alias("from_ms"),
        F.col("first_ms").alias("to_ms"),
    )
    restarted = F.struct(
        F.lit("incarnation").alias("type"),
        missing_from.cast("bigint").alias("from_seq"),
        missing_from.cast("bigint").alias("to_seq"),
        F.col("before.last_ms").alias("from_ms"),
        F.col("starts_ms").alias("to_ms"),
    )
    both = F.array_compact(F.array(F.when(missing_from < F.col("first_seq"), hole), F.when(~same, restarted)))
    breaks = behind.select(*STREAM, F.inline(both))
    return breaks.unionByName(_rollbacks(events, whole)).select(*GAPS.schema.fieldNames())


def runs(events: DataFrame) -> DataFrame:
    """Where history is whole, of EVENTS: entries `first_seq` to `last_seq` of an incarnation, phantoms aside, from
    `first_ms` to `last_ms`; `segment` and the other columns as in `clean`; `starts_ms`, when the incarnation began.
    Incarnations are in the order in which they were read first, since `inc` is the time of a clock, and that of a new
    store may be behind. One that goes on after another one (a store that is back) has a run before it and one behind.

    `backs` array<struct<seq, batch, ms, n>>, in every run of the incarnation, are its rollbacks: the first entry of the
    new primary in the place of another, as it was first read. `twice_from` to `twice_to` are the first and the last
    entry of the run that were read more than once, null if there is none."""
    read = F.struct("batch", F.col("last_ms").alias("ms"), F.col("last_n").alias("n"))
    of_incarnation = Window.partitionBy(*STREAM)
    so_far = of_incarnation.orderBy("first_seq").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    latest = F.max(F.struct("back.batch", "back.ms", "back.n")).over(so_far)
    real = (
        _seq_ranges(events)
        .withColumns(
            {
                "lost": read < latest,
                "backs": F.collect_list("back").over(of_incarnation),
            }
        )
        .where(~F.coalesce("lost", F.lit(False)))
        .transform(_with_visit)
    )
    in_order = Window.partitionBy("namespace").orderBy("visit", "first_seq")
    before = F.lag(F.struct("inc", "last_seq")).over(in_order)
    goes_on = before == F.struct("inc", F.col("first_seq") - 1)
    begins = F.when(F.coalesce(goes_on, F.lit(False)), 0).otherwise(1)
    run = F.sum("begins").over(in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    joined = (
        real.withColumn("begins", begins)
        .withColumn("segment", (run - 1).cast("bigint"))
        .groupBy(*STREAM, "segment")
        .agg(
            F.min("first_seq").alias("first_seq"),
            F.max("last_seq").alias("last_seq"),
            F.min("first_ms").alias("first_ms"),
            F.max("last_ms").alias("last_ms"),
            F.first("backs").alias("backs"),
            F.min("twice_from").alias("twice_from"),
            F.max("twice_to").alias("twice_to"),
        )
    )
    return _with_spans(joined)


def _with_visit(ranges: DataFrame) -> DataFrame:
    """Adds `visit`, how often another incarnation was read before."""
    as_read = Window.partitionBy("namespace").orderBy("new", "inc", "first_seq")
    another = F.when(F.lag("inc").over(as_read) != F.col("inc"), 1).otherwise(0)
    so_far = as_read.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return ranges.withColumn("another", another).withColumn("visit", F.sum("another").over(so_far))


def _with_spans(joined: DataFrame) -> DataFrame:
    earlier = F.max("last_ms").over(_in_order().rowsBetween(Window.unboundedPreceding, -1))
    begun = F.when(F.col("first_seq") == 1, F.col("first_ms")).otherwise(F.least("inc", "first_ms"))
    dated = joined.withColumn("starts_ms", F.greatest(begun, earlier))
    before = F.lag(F.struct("inc", "last_ms")).over(_in_order())
    behind = F.lead(F.struct("inc", "starts_ms")).over(_in_order())
    hole_before = F.col("before.inc") == F.col("inc")
    hole_behind = F.col("behind.inc") == F.col("inc")
    after_ms = F.when(hole_before, F.col("before.last_ms")).when(~hole_before, F.col("starts_ms"))
    until_ms = F.when(hole_behind, F.col("last_ms")).when(~hole_behind, F.col("behind.starts_ms"))
    until_cause = F.when(hole_behind, "gap").when(~hole_behind, "incarnation")
    return (
        dated.withColumns({"before": before, "behind": behind})
        .withColumns({"after_ms": after_ms, "until_ms": until_ms, "until_cause": until_cause})
        .drop("before", "behind")
    )


def _seq_ranges(events: DataFrame) -> DataFrame:
    """Entries that follow each other, as they were read last: `first_seq` to `last_seq`, all of one `batch` and with
    ids that grow, from `first_ms` to `last_ms` and `last_n`. `back` is the first rollback that shows among them;
    `twice_from` to `twice_to` are those that were read more than once; `new` is the last time that one was read which
    had not been read before.

    64 seqs are the bits of a number, a word: where each batch read a stretch of it without a hole, and no two the
    same, nothing has to be sorted."""
    words = _words(events)
    doubtful = F.broadcast(words.where(~F.col("plain")).select(*WORD).distinct())
    nothing = F.lit(None)
    plain = words.where("plain").select(
        *STREAM,
        "first_seq",
        "last_seq",
        "batch",
        "first_ms",
        "last_ms",
        F.lit(2**31 - 1).alias("last_n"),
        nothing.cast(BACK).alias("back"),
        nothing.cast("bigint").alias("twice_from"),
        nothing.cast("bigint").alias("twice_to"),
        F.struct("batch", F.col("last_ms").alias("ms"), F.lit(2**31 - 1).alias("n")).alias("new"),
    )
    looked_at = events.withColumn("word", _word()).join(doubtful, [*WORD], "left_semi")
    return plain.unionByName(_seq_ranges_by_entry(looked_at))


def _words(events: DataFrame) -> DataFrame:
    """Per word and batch what was read of it, and whether the word is `plain`."""
    parts = (
        events.select(*STREAM, _word().alias("word"), "batch", "seq", "id_ms")
        .groupBy(*WORD, "batch")
        .agg(
            F.expr(f"bit_or(shiftleft(1L, cast(seq & {2**WORD_BITS - 1} as int)))").alias("seen"),
            F.count("*").alias("reads"),
            F.min("seq").alias("first_seq"),
            F.max("seq").alias("last_seq"),
            F.min("id_ms").alias("first_ms"),
            F.max("id_ms").alias("last_ms"),
        )
    )
    word = Window.partitionBy(*WORD)
    once = F.sum("reads").over(word) == F.bit_count(F.bit_or("seen").over(word))
    gapless = F.col("last_seq") - F.col("first_seq") + 1 == F.bit_count("seen")
    return parts.withColumn("plain", once & F.min(gapless).over(word))


def _word() -> Column:
    return F.shiftright("seq", WORD_BITS)


def _seq_ranges_by_entry(events: DataFrame) -> DataFrame:
    """`_seq_ranges` of entries that have to be looked at one by one."""
    bucket = (*STREAM, "bucket")
    read = F.struct("seq", "batch", F.col("id_ms").alias("ms"), F.col("id_n").alias("n"))
    by_seq = Window.partitionBy(*bucket).orderBy("seq", "batch", "id_ms", "id_n")
    so_far = by_seq.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    narrow = (*STREAM, F.shiftright("seq", BUCKET_BITS).alias("bucket"), "seq", "batch", "id_ms", "id_n")
    reads = events.select(*narrow, read.alias("read")).withColumns(
        {"before": F.lag(read).over(by_seq), "behind": F.lead("seq").over(by_seq)}
    )
    again = F.coalesce(F.col("before.seq") == F.col("seq"), F.lit(False))
    another = again & (F.struct("before.ms", "before.n") != F.struct("id_ms", "id_n"))
    back = F.last(F.when(another, F.col("read")), ignorenulls=True).over(so_far)
    new = F.last(F.when(~again, F.col("read")), ignorenulls=True).over(so_far)
    newest = (
        reads.withColumns({"back": back, "again": again, "new": new})
        .where(F.col("behind").isNull() | (F.col("behind") != F.col("seq")))
        .withColumn("back", F.when(F.col("back.seq") == F.col("seq"), F.col("back")))
    )
    batches = F.col("back.batch").alias("back_batch"), F.col("new.batch").alias("new_batch")
    last = F.lag(F.struct("read", *batches)).over(by_seq)
    goes_on = (
        (F.col("last.read.seq") + 1 == F.col("seq"))
        & (F.col("last.read.batch") == F.col("batch"))
        & (F.struct("last.read.ms", "last.read.n") < F.struct("id_ms", "id_n"))
        & F.col("last.back_batch").eqNullSafe(F.col("back.batch"))
        & (F.col("last.new_batch") == F.col("new.batch"))
    )
    twice = F.when(F.col("again"), F.col("seq"))
    return (
        newest.withColumn("last", last)
        .withColumn("begins", F.when(F.coalesce(goes_on, F.lit(False)), 0).otherwise(1))
        .withColumn("seq_range", F.sum("begins").over(so_far))
        .groupBy(*bucket, "seq_range")
        .agg(
            F.min("seq").alias("first_seq"),
            F.max("read").alias("last"),
            F.min("id_ms").alias("first_ms"),
            F.min("back").alias("back"),
            F.min(twice).alias("twice_from"),
            F.max(twice).alias("twice_to"),
            F.max(F.struct("new.batch", "new.ms", "new.n")).alias("new"),
        )
        .select(
            *STREAM,
            "first_seq",
            F.col("last.seq").alias("last_seq"),
            "last.batch",
            "first_ms",
            F.col("last.ms").alias("last_ms"),
            F.col("last.n").alias("last_n"),
            "back",
            "twice_from",
            "twice_to",
            "new",
        )
    )


def _with_fate(events: DataFrame, whole: DataFrame, how: str = "left") -> DataFrame:
    """All rows with `id`, `segment`, `span`, whether they may have been read `twice`, and `fate`, null for those to be
    folded."""
    held = F.broadcast(whole).selectExpr(
        "namespace as of",
        "inc as of_inc",
        "first_seq",
        "last_seq",
        "segment",
        "backs",
        "twice_from",
        "twice_to",
        "struct(first_seq, after_ms, until_ms, until_cause) as span",
    )
    place = "namespace = of and inc = of_inc and seq between first_seq and last_seq"
    placed = events.join(held, F.expr(place), how)
    first = "seq - coalesce(part_i, 1) + 1"
    cut = f"{first} < first_seq or {first} + coalesce(part_n, 1) - 1 > last_seq"
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    known = f"coalesce(kind in ({kinds}) and coalesce(v, {VERSION}) <= {VERSION}, false)"
    lost = f"segment is null or exists(backs, back -> {_is_lost_to('back')})"
    return placed.selectExpr(
        *events.columns,
        "struct(id_ms as ms, id_n as n) as id",
        "segment",
        "span",
        "coalesce(seq between twice_from and twice_to, false) as twice",
        f"case when {lost} then 'phantom' when not {known} then 'unknown' when {cut} then 'incomplete' end as fate",
    )


def _is_lost_to(back: str) -> str:
    """SQL: whether this rollback undid the row, which was read before, of the same or a higher seq."""
    return f"(seq >= {back}.seq and struct(batch, id_ms, id_n) < {_read(back)})"


def _read(back: str) -> str:
    """SQL: when it was read, to be compared."""
    return f"struct({back}.batch, {back}.ms, {back}.n)"


def _rollbacks(events: DataFrame, whole: DataFrame) -> DataFrame:
    """GAPS of type rollback: from the seq that was given twice to the highest that never happened."""
    backs = whole.groupBy(*STREAM).agg(F.first("backs").alias("backs"))
    each = backs.select(*STREAM, "backs", F.explode("backs").alias("back"))
    placed = events.join(F.broadcast(each), [*STREAM])
    gone_before = f"exists(backs, other -> {_is_lost_to('other')} and {_read('other')} < {_read('back')})"
    lost = F.expr(f"{_is_lost_to('back')} and not {gone_before}")
    before = F.when(F.col("seq") == F.col("back.seq") - 1, F.struct("batch", "id_ms"))
    return (
        placed.groupBy(*STREAM, F.col("back.seq").alias("from_seq"))
        .agg(
            F.max(F.when(lost, F.col("seq"))).alias("to_seq"),
            F.max(before)["id_ms"].alias("from_ms"),
            F.max(F.struct("back.batch", "back.ms"))["ms"].alias("to_ms"),
        )
        .withColumn("type", F.lit("rollback"))
    )


def _in_order() -> WindowSpec:
    return Window.partitionBy("namespace").orderBy("segment")
