"""How a report's rows come about: what happened in each window, and at the end the columns of its table."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.reports.shape import WINDOW, judged_at
from pipeline.schemas import Table
from pipeline.windows import Window, frame


def happened(rows: DataFrame, of: Sequence[Window], at_ms: str) -> DataFrame:
    """Each row once for every window that its time `at_ms` lies in: with `window`, `from_ms`, `to_ms`."""
    windows = _windows(rows, of)
    return rows.join(windows, (F.col(at_ms) >= F.col("from_ms")) & (F.col(at_ms) < F.col("to_ms")))


def each_window(rows: DataFrame, of: Sequence[Window]) -> DataFrame:
    """Each row once for every window."""
    return rows.crossJoin(_windows(rows, of))


def report(rows: DataFrame, table: Table, as_of: int, late_ms: int) -> DataFrame:
    """The columns of a REPORT_* table of rows that have its values; one that they lack is null."""
    return rows.withColumns(judged_at(as_of, late_ms)).to(table.schema)


def _windows(rows: DataFrame, of: Sequence[Window]) -> DataFrame:
    return frame(rows.sparkSession, of).toDF(*WINDOW)
