"""Runs of few rows: what they write and what is found then."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from mqpipeline.delta import is_loaded
from mqpipeline.schemas import BROKER_SESSIONS
from mqpipeline.warehouse import Folded, Run, Warehouse
from testbed.needs import MAVEN_CENTRAL, skip
from tests.mqpipeline.rows import frame, rows_of


def need_delta(spark: SparkSession) -> None:
    """Skip the running test where Spark could not fetch Delta's jars."""
    if not is_loaded(spark):
        skip(MAVEN_CENTRAL)


def sessions(warehouse: Warehouse, *brokers: str, end_ms: int | None = None) -> DataFrame:
    return frame(warehouse.spark, BROKER_SESSIONS, [{"broker": one, "end_ms": end_ms} for one in brokers])


def write(run: Run, *, closed: DataFrame, open: DataFrame | None = None, full: bool = False) -> None:
    rows = closed.unionByName(open) if open else closed
    run.write(BROKER_SESSIONS, rows, open="end_ms is null", full=full)


def commit(run: Run) -> None:
    run.commit(as_of_ms=run.number, final_ms=0, folded={"default": Folded(1, run.number, 3, True)})


def found(warehouse: Warehouse) -> set[str]:
    return {name for (name,) in rows_of(warehouse.read(BROKER_SESSIONS), "broker")}


def newest(warehouse: Warehouse, table: str, *columns: str) -> set[tuple[Any, ...]]:
    """Return what readers of Delta tables find that know nothing of our snapshots."""
    return rows_of(warehouse.spark.read.format("delta").load(f"{warehouse.root}/{table}"), *columns)
