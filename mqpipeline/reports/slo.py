"""Error budgets of clusters: how much of the failing that their objective allows is spent, and how fast it goes."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqpipeline.reports.availability import CLUSTER, cluster_time
from mqpipeline.reports.catalogue import SLO
from mqpipeline.reports.rows import as_report
from mqpipeline.reports.shape import unit
from mqpipeline.states.brokers import BROKER
from mqpipeline.windows import DAY_MS, HOUR_MS, LATE_MS, Window, time_in

OBJECTIVE = 0.999
BURN = {"5m": HOUR_MS // 12, "30m": HOUR_MS // 2, "1h": HOUR_MS, "6h": 6 * HOUR_MS, "3d": 3 * DAY_MS}
DIGITS = 9
"""To which a burn rate is compared: 14.4 is reached by what binary fractions make 14.399999999999999."""


FAILED = "try_divide(down_ms, up_ms + down_ms)"
HALF_KNOWN = "up_ms + down_ms + planned_ms >= unknown_ms"


class Alert(NamedTuple):
    """Fires while both rates are at or over `rate`: the long one says that it matters, the short one that it lasts.

    Not while less than half of the long window is known: the first minutes of a history are no hour."""

    name: str
    rate: float
    long: str
    short: str


ALERTS = (Alert("14.4", 14.4, "1h", "5m"), Alert("6", 6, "6h", "30m"), Alert("1", 1, "3d", "6h"))


def slo(
    brokers: DataFrame,
    windows: Sequence[Window],
    as_of: int,
    objectives: Mapping[str, float] | None = None,
    objective: float = OBJECTIVE,
    late_ms: int = LATE_MS,
) -> DataFrame:
    """Return SLO of the windows, from the states of brokers (`broker_states`); `objectives` by cluster, `objective` for
    the rest. Burn rates are those at the window's end, also over windows that begin before it."""
    spent = cluster_time(time_in(brokers, windows, BROKER))
    ends = sorted({window.to_ms for window in windows})
    backwards = [Window(name, end - length, end) for end in ends for name, length in BURN.items()]
    recent = cluster_time(time_in(brokers, backwards, BROKER))
    shares = recent.groupBy(*CLUSTER, "to_ms").agg(
        *(
            F.max(F.when(F.col("window") == name, F.expr(sql))).alias(column)
            for name in BURN
            for column, sql in ((name, FAILED), (_known(name), HALF_KNOWN))
        )
    )
    rows = spent.join(shares, [*CLUSTER, "to_ms"], "left").withColumn(
        "slo", _objective(objectives or {}, objective)
    )
    allowed = rows.withColumn("allowed", F.round(1 - F.col("slo"), 12)).withColumns(
        {name: F.try_divide(F.col(name), F.col("allowed")) for name in BURN}
    )
    values = allowed.withColumn("budget_ms", F.expr("allowed * (up_ms + down_ms)")).withColumns(
        {
            "spent_ms": F.col("down_ms").cast("double"),
            "remaining": F.expr("1 - try_divide(down_ms, budget_ms)"),
            "burn": F.create_map(*(part for name in BURN for part in (F.lit(name), F.col(name)))),
            "alerts": F.array_compact(F.array(*(F.when(_fires(alert), alert.name) for alert in ALERTS))),
            "unit": unit("cluster", "cluster"),
        }
    )
    return values.transform(as_report, SLO, as_of, late_ms)


def _objective(objectives: Mapping[str, float], otherwise: float) -> Column:
    chosen = F.lit(float(otherwise))
    for cluster, objective in objectives.items():
        chosen = F.when(F.col("cluster") == cluster, float(objective)).otherwise(chosen)
    return chosen


def _fires(alert: Alert) -> Column:
    both = (F.round(rate, DIGITS) >= alert.rate for rate in (alert.long, alert.short))
    return reduce(and_, both, F.col(_known(alert.long)))


def _known(window: str) -> str:
    return f"{window}_known"
