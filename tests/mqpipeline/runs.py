"""Runs of few rows: what they write and what is found then."""

from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame

from mqpipeline.schemas import BROKER_SESSIONS
from mqpipeline.warehouse import Folded, Run, Warehouse
from tests.mqpipeline.rows import frame, rows_of


def sessions(warehouse: Warehouse, *brokers: str, end_ms: int | None = None) -> DataFrame:
    return frame(warehouse.spark, BROKER_SESSIONS, [{"broker": one, "end_ms": end_ms} for one in brokers])


def write(run: Run, *, closed: DataFrame, open: DataFrame | None = None, full: bool = False) -> None:
    rows = closed.unionByName(open) if open else closed
    run.write(run.plan(BROKER_SESSIONS, rows, open="end_ms is null", full=full))


def commit(run: Run) -> None:
    run.commit(as_of_ms=run.number, final_ms=0, folded={"default": Folded(1, run.number, 3, True)})


def found(warehouse: Warehouse) -> set[str]:
    return {name for (name,) in rows_of(warehouse.read(BROKER_SESSIONS), "broker")}


def newest(warehouse: Warehouse, table: str, *columns: str) -> set[tuple[Any, ...]]:
    """Return what readers of Delta tables find that know nothing of our snapshots."""
    rows = DeltaTable(warehouse.place.under(table).url).to_pyarrow_table(columns=list(columns)).to_pylist()
    return {tuple(row.values()) for row in rows}
