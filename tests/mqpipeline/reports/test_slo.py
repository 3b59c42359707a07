from collections.abc import Mapping

import pytest
from pyspark.sql import Row, SparkSession

from mqpipeline.reports.slo import slo
from mqpipeline.windows import HOUR_MS, Window
from tests.mqpipeline.rows import as_frame

BROKERS = "namespace string, cluster string, broker string, state string, from_ms bigint, to_ms bigint"
DAY = 24 * HOUR_MS
MINUTE = 60_000
END = 10 * DAY
"""When each cluster was DOWN: minutes before the end; it is UP otherwise, but `planned`, which is never that."""
DOWN: Mapping[str, list[tuple[float, float]]] = {
    "well": [],
    "just now": [(0.1, 0)],
    "just enough": [(0.864, 0)],  # 14.4 times 0.001 of an hour
    "not quite enough": [(0.8639, 0)],
    "over": [(300, 10)],
    "a while ago": [(60, 40)],
    "before noon": [(750, 745)],
    "yesterday": [(1500, 1450)],
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, Row]:
    rows: list[tuple[str, str, str, str, int, int]] = []
    for cluster, outages in DOWN.items():
        now = 0
        for begin, end in outages:
            rows.append(("n", cluster, "a", "UP", now, END - round(begin * MINUTE)))
            rows.append(
                ("n", cluster, "a", "DOWN", END - round(begin * MINUTE), now := END - round(end * MINUTE))
            )
        rows.append(("n", cluster, "a", "UP", now, END))
    rows.append(("n", "planned", "a", "PLANNED", 0, END))
    rows.append(("n", "gone", "a", "UP", 0, END - 4 * DAY))
    rows.append(("n", "new", "a", "DOWN", END - 5 * MINUTE, END))
    rows.append(("n", "half known", "a", "DOWN", END - 30 * MINUTE, END))
    states = as_frame(spark, [row for row in rows if row[4] < row[5]], BROKERS)
    of = [Window("7d", END - 7 * DAY, END), Window("day", END - DAY, END - DAY // 2)]
    report = slo(states, of, END, {"over": 0.5, "yesterday": 1.0}).collect()
    return {f"{row.unit.removeprefix('cluster:')}, {row.window}": row for row in report}


@pytest.mark.parametrize(
    ("row", "alerts"),
    [
        ("well, 7d", []),
        ("just now, 7d", []),
        ("just enough, 7d", ["14.4"]),
        ("not quite enough, 7d", []),
        ("a while ago, 7d", ["1"]),
        ("planned, 7d", []),
        ("gone, 7d", []),
        ("new, 7d", []),
        ("half known, 7d", ["14.4"]),
    ],
)
def test_both_windows_are_at_or_over(found: dict[str, Row], row: str, alerts: list[str]) -> None:
    assert found[row].alerts == alerts


def test_nothing_to_burn(found: dict[str, Row]) -> None:
    nothing = dict.fromkeys(("5m", "30m", "1h", "6h", "3d"))
    assert found["planned, 7d"].burn == nothing
    assert found["gone, 7d"].burn == nothing
    assert (found["planned, 7d"].budget_ms, found["planned, 7d"].remaining) == (0, None)


def test_each_cluster_has_its_objective(found: dict[str, Row]) -> None:
    assert [found[f"{cluster}, 7d"].slo for cluster in ("well", "over", "yesterday")] == [0.999, 0.5, 1]
    row = found["over, 7d"]
    assert (row.budget_ms, row.spent_ms) == (3.5 * DAY, 290 * MINUTE)
    assert row.burn["6h"] == pytest.approx(2 * 290 / 360)


def test_an_objective_without_a_budget(found: dict[str, Row]) -> None:
    row = found["yesterday, 7d"]
    assert (row.budget_ms, row.spent_ms, row.remaining, row.burn["3d"]) == (0, 50 * MINUTE, None, None)


def test_rates_are_those_at_the_windows_end(found: dict[str, Row]) -> None:
    """The day is cut off at noon, 720 minutes before the end."""
    row = found["before noon, day"]
    assert (row.burn["5m"], row.burn["30m"]) == (0, pytest.approx(1000 / 6))
    assert row.alerts == ["6", "1"]
    assert found["before noon, 7d"].burn["6h"] == 0
