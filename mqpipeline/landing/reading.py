"""What has landed, as a table."""

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mqpipeline.lake.log import File, opened
from mqpipeline.lake.place import place
from mqpipeline.lake.reading import rows_of
from mqpipeline.schemas import EVENTS, HEARTBEATS, Table

EVER: Final = float("-inf")
NO_BATCH: Final = float("inf")


class LandedTable:
    """A landed table as it is now: what lands later is not seen. Raises LakeError if the table is damaged."""

    def __init__(self, spark: SparkSession, root: str, table: Table) -> None:
        self._spark = spark
        self._table = table
        self._place = place(root).under(table.name)
        log = opened(self._place, table)
        self._files = [] if log is None else log.files()
        self._frames: dict[tuple[str, ...], DataFrame] = {}

    def rows(self, *, from_ms: float = EVER, after_batch: float = NO_BATCH) -> DataFrame:
        """Return all rows of the files that may have one of this time or later, or of a batch after this one."""
        wanted = self._wanted(from_ms, after_batch)
        paths = tuple(file.path for file in wanted)
        if paths not in self._frames:
            frame = rows_of(self._spark, self._place, self._table, wanted, partitions=False)
            self._frames[paths] = frame
        return self._frames[paths]

    def has_rows(self, *, from_ms: float = EVER, after_batch: float = NO_BATCH) -> bool:
        """Return False only if no file has such a row."""
        return bool(self._wanted(from_ms, after_batch))

    def _wanted(self, from_ms: float, after_batch: float) -> list[File]:
        return [
            file
            for file in self._files
            if _most(file, "id_ms") >= from_ms or _most(file, "batch") > after_batch
        ]


def events(spark: SparkSession, root: str) -> LandedTable:
    """EVENTS, each batch whole or not at all."""
    return LandedTable(spark, root, EVENTS)


def heartbeats(spark: SparkSession, root: str) -> LandedTable:
    """HEARTBEATS. A heartbeat is there twice if it was read again after a primary was lost."""
    return LandedTable(spark, root, HEARTBEATS)


def read_events(spark: SparkSession, root: str, *, after_batch: int = 0) -> DataFrame:
    """EVENTS of batches after this one."""
    return events(spark, root).rows().where(F.col("batch") > after_batch)


def _most(file: File, column: str) -> float:
    """Of a file's rows; of one of which the log does not say it, infinity."""
    most = file.most.get(column)
    return float("inf") if most is None else most
