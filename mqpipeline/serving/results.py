"""What is served of a run: of each report the rows that say most, few enough to hold in one process."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from mqpipeline import lines
from mqpipeline.reports.catalogue import AVAILABILITY, CATALOGUE, CHURN, ROLLING, Cut, Report

Row: TypeAlias = Mapping[str, Any]
"""A row by the names of its columns, and `of`: how many rows there were where it was taken from."""

LONGEST_FIRST = (*reversed(ROLLING), "now")
DAY_MS: Final = 86_400_000
DAYS = 31
MONTHS = 12
NEAR_DAYS, NEAR_MONTHS = 7, 2
"""Calendar windows so recent are taken with all their units; older ones with clusters and the worst brokers."""
HOURS = 72
WORST = 30
STRIPS = 40
STRIP_DAYS = 7
STRIP_STATES = 200
"""The latest states of a broker that the page shows."""
BROKER_STATES = "broker_states"
CHURN_HOURS = "churn_hours"
CUTS: Final = {report.table.name: report.cut for report in CATALOGUE}


class Run(msgspec.Struct, frozen=True):
    """What a run says of itself. `took_ms` up to here; the others are of HEALTH, by other names `events`, entries that
    have landed, and `holes`, those that were never read."""

    run: str
    as_of_ms: int
    took_ms: int
    events: int
    rejected: int
    holes: int = 0
    phantoms: int = 0
    repeats: int = 0
    unknown: int = 0
    incomplete: int = 0
    waiting: int = 0
    incarnations: int = 0
    round_ms: int | None = None
    proves: bool | None = None
    members_differing: int | None = None
    pairs_differing: int | None = None

    @property
    def differing(self) -> int:
        """How much of the newest checkpoint differs from the tables though it must not."""
        return (self.members_differing or 0) + (self.pairs_differing or 0) if self.proves else 0


class Results(msgspec.Struct, frozen=True):
    """The results of one namespace: rows by the table they are of, each table in its order."""

    as_of_ms: int
    tables: Mapping[str, tuple[Row, ...]]

    def of(self, table: str, window: str | None = None) -> tuple[Row, ...]:
        """The rows of a table, in one window if that is said."""
        rows = self.tables.get(table, ())
        return rows if window is None else tuple(row for row in rows if row["window"] == window)

    def rows(self, report: Report) -> tuple[Row, ...]:
        """Return those of the longest window that ends at `as_of`, or all of a report without windows."""
        return self.longest(report.table.name) if report.windowed else self.of(report.table.name)

    def longest(self, table: str) -> tuple[Row, ...]:
        """The rows of the longest window that ends at `as_of`."""
        return next((rows for window in LONGEST_FIRST if (rows := self.of(table, window))), ())


def take(frames: Mapping[str, DataFrame], as_of_ms: int) -> dict[str, Results]:
    """-> namespace -> what is served of it.

    `frames` are the reports and incidents by the names of their tables (mqpipeline/schemas.py), and `broker_states`:
    namespace, cluster, broker, state, from_ms, to_ms. Those that are left out count as empty."""
    taken: defaultdict[str, dict[str, tuple[Row, ...]]] = defaultdict(dict)
    cut = {name: frame.drop("kind") for name, frame in _cut(frames, as_of_ms).items()}
    for name, rows in lines.rows(cut).items():
        by_namespace: defaultdict[str, list[Row]] = defaultdict(list)
        for row in sorted(rows, key=_position):
            del row["position"]
            by_namespace[row.pop("namespace")].append(row)
        for namespace, listed in by_namespace.items():
            taken[namespace][name] = tuple(listed)
    return {namespace: Results(as_of_ms, tables) for namespace, tables in taken.items()}


def _position(row: Row) -> tuple[Any, ...]:
    """Return a row's place in the order, a number or a struct."""
    position = row["position"]
    return tuple(position.values()) if isinstance(position, dict) else (position,)


def _cut(frames: Mapping[str, DataFrame], as_of_ms: int) -> dict[str, DataFrame]:
    """Each with a column `position`, its place in the order."""
    cut = {name: _first(name, frame, as_of_ms) for name, frame in frames.items() if name in CUTS}
    if CHURN.table.name in frames:
        cut[CHURN_HOURS] = _churn_hours(frames[CHURN.table.name], as_of_ms)
    if BROKER_STATES in frames:
        cut[BROKER_STATES] = _strips(frames[BROKER_STATES], as_of_ms)
    return cut


def _first(name: str, frame: DataFrame, as_of_ms: int) -> DataFrame:
    if "unit" in frame.columns:
        frame = frame.withColumn("kind", sql.expr("substring_index(unit, ':', 1)"))
    if name == AVAILABILITY.table.name:
        return _availability(frame, as_of_ms)
    if "window" in frame.columns:
        frame = frame.filter(sql.col("window").isin(*LONGEST_FIRST))
    return _ranked(frame, CUTS[name]).filter(f"position <= {CUTS[name].most}")


def _ranked(frame: DataFrame, cut: Cut) -> DataFrame:
    group = f"partition by namespace, {cut.group}"
    return frame.withColumns(
        {
            "position": sql.expr(f"row_number() over ({group} order by {cut.order})"),
            "of": sql.expr(f"count(*) over ({group})"),
        }
    )


def _availability(frame: DataFrame, as_of_ms: int) -> DataFrame:
    """Rolling and recent calendar windows; of older ones what the months' and days' tables show."""
    cut = CUTS[AVAILABILITY.table.name]
    near = sql.expr(
        f"""window in {ROLLING}
        or window = 'day' and to_ms > {as_of_ms - NEAR_DAYS * DAY_MS}
        or window = 'month' and to_ms > {as_of_ms - (NEAR_MONTHS - 1) * 31 * DAY_MS}"""
    )
    shown = sql.expr(
        f"""kind <> 'topic' and (window = 'day' and to_ms > {as_of_ms - DAYS * DAY_MS}
        or window = 'month' and to_ms > {as_of_ms - MONTHS * 31 * DAY_MS})"""
    )
    among_worst = sql.expr(
        f"""max(window = '{ROLLING[-1]}' and kind = 'broker' and position <= {WORST})
        over (partition by namespace, unit)"""
    )
    return (
        _ranked(frame.filter(near | shown), cut)
        .filter(
            f"kind <> 'topic' or position <= {cut.most}"
        )  # most rows are topics: they need not be shuffled
        .withColumn("among_worst", among_worst)
        .filter((near & sql.expr(f"position <= {cut.most}")) | sql.expr("kind = 'cluster' or among_worst"))
        .drop("among_worst")
    )


def _churn_hours(churn: DataFrame, as_of_ms: int) -> DataFrame:
    """By hour and cause, all clusters together."""
    hours = churn.filter((sql.col("window") == "hour") & (sql.col("to_ms") > as_of_ms - HOURS * DAY_MS // 24))
    return (
        hours.groupBy("namespace", "from_ms", "cause")
        .agg(sql.sum("acts").alias("acts"), sql.sum("pairs").alias("pairs"))
        .withColumn("position", sql.struct("from_ms", "cause"))
    )


def _strips(states: DataFrame, as_of_ms: int) -> DataFrame:
    """Return the latest states of the brokers that were down longest in the last days, with `down_ms` of all."""
    since = as_of_ms - STRIP_DAYS * DAY_MS
    clipped = (
        states.filter(
            (sql.col("to_ms").isNull() | (sql.col("to_ms") > since)) & (sql.col("from_ms") < as_of_ms)
        )
        .withColumn("from_ms", sql.greatest(sql.col("from_ms"), sql.lit(since)))
        .withColumn("to_ms", sql.least(sql.coalesce(sql.col("to_ms"), sql.lit(as_of_ms)), sql.lit(as_of_ms)))
    )
    latest = clipped.withColumns(
        {
            "down_ms": sql.expr(
                """sum(if(state = 'DOWN', to_ms - from_ms, 0))
                over (partition by namespace, cluster, broker)"""
            ),
            "recent": sql.expr(
                "row_number() over (partition by namespace, cluster, broker order by from_ms desc)"
            ),
        }
    ).filter(f"recent <= {STRIP_STATES}")
    placed = latest.withColumn(
        "place", sql.expr("dense_rank() over (partition by namespace order by down_ms desc, cluster, broker)")
    ).withColumn("of", sql.expr("max(place) over (partition by namespace)"))
    return (
        placed.filter(f"place <= {STRIPS}")
        .withColumn("position", sql.struct("place", "from_ms"))
        .drop("recent", "place")
    )
