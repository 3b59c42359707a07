"""How a report's rows come about: what happened in each window, and at the end the columns of its table."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqpipeline.reports.catalogue import Report
from mqpipeline.reports.shape import WINDOW, judged_at
from mqpipeline.windows import Window, frame


def happened(rows: DataFrame, windows: Sequence[Window], at_ms: str) -> DataFrame:
    """Each row once for every window that its time `at_ms` lies in: with `window`, `from_ms`, `to_ms`."""
    named = _windows(rows, windows)
    return rows.join(named, (F.col(at_ms) >= F.col("from_ms")) & (F.col(at_ms) < F.col("to_ms")))


def each_window(rows: DataFrame, windows: Sequence[Window]) -> DataFrame:
    """Each row once for every window."""
    return rows.crossJoin(_windows(rows, windows))


def as_report(rows: DataFrame, report: Report, as_of: int, late_ms: int) -> DataFrame:
    """Return the columns of the report's table from rows that have its values; one that they lack is null."""
    return rows.withColumns(judged_at(as_of, late_ms)).to(report.table.schema)


def _windows(rows: DataFrame, windows: Sequence[Window]) -> DataFrame:
    return frame(rows.sparkSession, windows).toDF(*WINDOW)
