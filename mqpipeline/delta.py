"""The derived tables as Delta tables, which anything that knows Delta Lake can read: `<root>/<table>`.

Delta knows transactions of one table, not of several. So a run writes its parts beside, as Parquet, where its own later
steps read them; when it commits, each table gets one transaction, and the snapshot names the version that this made.
Readers of the snapshot find all tables as one run left them, because they ask for these versions; a reader of a
table without it finds the newest run's, whole.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from importlib.metadata import version
from typing import Any

import pyspark
from delta import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqpipeline import files, schemas
from mqpipeline.reports import catalogue
from mqpipeline.schemas import Table
from mqpipeline.warehouse import CLOSED, OPEN, PART, ParquetFolders, Parts, arranged, parted_by

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
SETTINGS = {
    "spark.sql.extensions": EXTENSION,
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.autoCompact.enabled": "true",  # many small files of a folder become one
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false",  # closed rows come with the open ones
    "spark.databricks.delta.snapshotPartitions": "8",  # a table has some thousand files, not millions
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",  # newest, if old
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",  # tasks of a VACUUM, else 10,000
}
JAR = "io.delta:delta-spark_{spark}_2.13:{delta}"
OF_SPARK = "com.*:*,org.*:*,javax.*:*,commons-*:*,io.airlift:*,io.unitycatalog:*"
"""What Delta's jar names as its dependencies and Spark brings itself, or what only a Unity catalog needs."""

TABLES = {table.name: table for table in (*schemas.TABLES, *catalogue.TABLES)}
STAGED = "_staged"
VERSION = "version="
LOG = "_delta_log"
VACUUM_EVERY = 24
"""Runs. It looks at each file of a table, to delete those that Delta's retention no longer keeps."""


def packages() -> dict[str, str]:
    """Settings of a session that is ours to start: have Spark fetch Delta's jar from Maven."""
    spark = ".".join(pyspark.__version__.split(".")[:2])
    jar = JAR.format(spark=spark, delta=version("delta-spark"))
    return {"spark.jars.packages": jar, "spark.jars.excludes": OF_SPARK}


def is_loaded(spark: SparkSession) -> bool:
    """Whether the session has Delta's jar."""
    jvm: Any = spark._jvm
    return bool(jvm.org.apache.spark.util.Utils.classIsLoadable(EXTENSION))


class DeltaTables(ParquetFolders):
    """A part is a folder of Parquet while its run goes on, then `<table>/version=<version>/part=…`."""

    format = "delta"

    def __init__(self, spark: SparkSession, root: str) -> None:
        super().__init__(spark, f"{root}/{STAGED}")
        self._tables = root

    def read(self, table: Table, parts: Sequence[str]) -> DataFrame:
        staged = [part for part in parts if _version(part) is None]
        frames = [super().read(table, staged)] if staged else []
        for number in sorted({number for part in parts if (number := _version(part)) is not None}):
            wanted = [_kind(part) for part in parts if _version(part) == number]
            whole = self._spark.read.format("delta").option("versionAsOf", number).load(self._path(table))
            frames.append(self._shaped(table, whole.where(F.col(PART).isin(wanted))))
        return reduce(DataFrame.unionByName, frames)

    def merge(self, table: Table, run: int, closed: tuple[str, ...]) -> tuple[str, ...]:
        """They become one when they are published."""
        return closed

    def publish(self, run: int, tables: Mapping[str, Parts]) -> Mapping[str, Parts]:
        """One transaction a table. Killed in between, the next run replaces what was published."""
        published = {name: self._published(TABLES[name], run, parts) for name, parts in tables.items()}
        files.delete(self._spark, self._root)
        if run % VACUUM_EVERY == 0:
            for name in published:
                DeltaTable.forPath(self._spark, self._path(TABLES[name])).vacuum()
        return published

    def delete(self, part: str) -> None:
        """Files go once Delta's retention has passed (VACUUM_EVERY)."""

    def _published(self, table: Table, run: int, parts: Parts) -> Parts:
        held = max((number for part in parts.all if (number := _version(part)) is not None), default=None)
        wanted = [part for part in parts.all if _version(part) is None]
        if held is not None and self._has_rows_after(table, held):
            wanted = list(parts.all)
        if wanted:
            self._write_version(table, run, wanted, full=len(wanted) == len(parts.all))
        number = self._newest(table)
        return Parts((_part(table, number, CLOSED),), _part(table, number, OPEN))

    def _has_rows_after(self, table: Table, held: int) -> bool:
        """Whether a run published what did not come to a snapshot. Versions of others only move rows."""
        if self._newest(table) == held:
            return False
        ours = f"version > {held} and userMetadata is not null"
        return not DeltaTable.forPath(self._spark, self._path(table)).history().where(ours).isEmpty()

    def _write_version(self, table: Table, run: int, staged: Sequence[str], *, full: bool) -> None:
        frames = [self.read(table, [part]).withColumn(PART, F.lit(_kind(part))) for part in staged]
        rows = arranged(reduce(DataFrame.unionByName, frames), table)
        writer = rows.write.format("delta").mode("overwrite").partitionBy(*parted_by(table))
        writer = writer.option("userMetadata", f"run {run}").option("partitionOverwriteMode", "static")
        if full:
            writer = writer.option("overwriteSchema", "true")
        else:
            writer = writer.option("replaceWhere", f"{PART} = '{OPEN}'").option("mergeSchema", "true")
        writer.save(self._path(table))

    def _shaped(self, table: Table, rows: DataFrame) -> DataFrame:
        """The table's columns, of which an older version may lack some."""
        there = rows.columns
        return rows.selectExpr(
            *(
                field.name
                if field.name in there
                else f"cast(null as {field.dataType.simpleString()}) as {field.name}"
                for field in table.stored_schema
            )
        )

    def _newest(self, table: Table) -> int:
        """A version is a file of the log, named by its number in twenty digits."""
        names = files.names(self._spark, f"{self._path(table)}/{LOG}")
        return max(int(name[:20]) for name in names if name[:20].isdigit() and name[20:] == ".json")

    def _path(self, table: Table) -> str:
        return f"{self._tables}/{table.name}"


def _part(table: Table, number: int, kind: str) -> str:
    return f"{table.name}/{VERSION}{number}/{PART}={kind}"


def _version(part: str) -> int | None:
    """None of a part that is not published yet."""
    middle = part.split("/")[1]
    return int(middle.removeprefix(VERSION)) if middle.startswith(VERSION) else None


def _kind(part: str) -> str:
    return part.rpartition("=")[2]
