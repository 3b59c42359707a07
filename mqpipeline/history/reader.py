"""Where history is read from: the newest snapshot of a warehouse, known again as long as it is the newest."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mqpipeline.history.questions import Reading
from mqpipeline.history.tables import Tables
from mqpipeline.schemas import BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS
from mqpipeline.warehouse import Snapshot, Warehouse


class NothingLanded(Exception):
    """The warehouse has no tables yet, or none of that namespace."""


class Reader:
    """Lives as long as its Spark session. Listing a table's files takes longer than reading the few that an answer
    needs, so it is done once a snapshot."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._snapshot = Snapshot()
        self._tables: Tables | None = None
        self._readings: dict[str, Reading] = {}

    @property
    def spark(self) -> SparkSession:
        """Its session."""
        return self._warehouse.spark

    def reading(self, namespace: str) -> Reading:
        """The newest tables of a namespace. Raises NothingLanded."""
        snapshot = self._warehouse.snapshot
        if self._tables is None or snapshot != self._snapshot:
            self._tables = _tables(self._warehouse, snapshot)
            self._snapshot, self._readings = snapshot, {}
        if namespace not in self._readings:
            tables = self._tables.of_namespace(namespace)
            first = _first_ms(tables)
            if first is None:
                text = f"{self._warehouse.root} has nothing of namespace {namespace!r}: land it with `mqpipeline run`"
                raise NothingLanded(text)
            self._readings[namespace] = Reading(
                tables, first, snapshot.earlier.get(namespace, snapshot.as_of_ms)
            )
        return self._readings[namespace]

    def stop(self) -> None:
        """Cancel the running Spark jobs: their caller has timed out."""
        self._warehouse.spark.sparkContext.cancelAllJobs()


def _tables(warehouse: Warehouse, snapshot: Snapshot) -> Tables:
    history_tables = (BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS)
    return Tables(*(warehouse.read(table, snapshot) for table in history_tables))


def _first_ms(tables: Tables) -> int | None:
    """Return when the tables begin: members that were there before it are known, but not their topics."""
    began = tables.sessions.where("not coalesce(left_censored, false)").select(F.col("start_ms").alias("ms"))
    held = tables.brokers.select(F.col("from_ms").alias("ms"))
    (row,) = began.union(held).agg(F.min("ms")).collect()
    first: int | None = row[0]
    return first
